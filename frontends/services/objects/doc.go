// Package objects describes the Kubernetes objects that the service frontend
// follows: Services, EndpointSlices, ServiceCIDRs and the node's own Node. In come
// the node's name and a model; out come the kinds to subscribe to at a source. Their
// events change the model, which needs a lock around Event.Apply.
//
// Read kinds.go first; trim.go has the fields that stay. The package does not decide
// what an object means: that is the model's.
package objects
