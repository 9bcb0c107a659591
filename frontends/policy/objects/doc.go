// Package objects describes the Kubernetes objects that the NetworkPolicy frontend follows:
// NetworkPolicies, ClusterNetworkPolicies, Pods, Namespaces, ServiceCIDRs and the node's own
// Node. In come the node's name and a model; out come the kinds to subscribe to at a source.
// Their events change the model, which needs a lock around Event.Apply.
//
// Read kinds.go first. The package does not decide what an object means: that is the
// model's, whose Parse functions also decide what of an object is kept.
//
// # Concurrency
//
// Objects are parsed by goroutines of the source, several at a time, without the model.
//
// # Errors
//
// There are none: the model reports the invalid parts of objects.
package objects
