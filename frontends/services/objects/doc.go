// Package objects describes the Kubernetes objects of the service frontend: Services, EndpointSlices,
// ServiceCIDRs and this node's Node. It takes the node's name and a model, and returns kinds for a
// source. Their events change the model, so Event.Apply needs the model's lock.
//
// Read kinds.go first; trim.go selects fields. The model interprets the objects.
package objects
