// Package objects describes the Kubernetes objects of the service frontend to a source: Services,
// EndpointSlices, ServiceCIDRs and this node's Node. Their events change the model, so Event.Apply needs the
// model's lock.
package objects
