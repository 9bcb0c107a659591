// Package objects describes the Kubernetes objects that the NetworkPolicy frontend follows:
// NetworkPolicies, ClusterNetworkPolicies, Pods, Namespaces, ServiceCIDRs and the node's own Node.
// Given the node's name and a model, it returns the kinds for a source. Their events change the
// model, which needs a lock around Event.Apply.
//
// Read kinds.go first. The package does not interpret objects: the Parse functions of the model do.
//
// # Concurrency
//
// Goroutines of the source parse objects, several at a time, without the model.
//
// # Errors
//
// The model reports the invalid parts of objects.
package objects
