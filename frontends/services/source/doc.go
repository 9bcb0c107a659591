// Package source delivers Services, EndpointSlices and the node's own Node
// object to the service frontend, from a directory of manifests or from the
// Kubernetes API, as one stream of events.
//
// It decides which objects there are, not what they mean: what is selected on
// the server for the API is left in the events for manifests, and the model
// judges both alike. It caches nothing beyond what its source needs: the model
// is the cache.
//
// # Concurrency
//
// A Source is run once, by Run, which returns when its context ends or the
// source can not work at all. Batches are delivered one at a time, from
// goroutines of the source, so the receiver should return soon.
//
// # Errors
//
// What is wrong with a single object or file is logged and skipped, and the
// last good state of it is kept. Run's own error means that there is nothing to
// watch: a directory that does not exist, a kubeconfig that does not parse.
package source
