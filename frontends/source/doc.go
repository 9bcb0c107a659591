// Package source delivers Services, EndpointSlices, ServiceCIDRs and the node's
// own Node object to the service frontend, from a directory of manifests or from
// the Kubernetes API, as one stream of events.
//
// It decides which objects there are, not what they mean: what is selected on
// the server for the API is left in the events for manifests, and the model
// judges both alike. It caches nothing beyond what its source needs: the model
// is the cache. Of an object in the API that is its version; objects in events
// have only the fields that the model uses.
//
// # The API
//
// Lists are streamed where the server can (client-go's feature WatchListClient,
// Kubernetes 1.34), and paged where not. Nothing is withdrawn before a complete
// list says so, however lists and watches end. A server that is back is found
// back within seconds: waits between attempts end at 3 s. There is no periodic
// resync: what is known is not delivered again. A server without ServiceCIDRs,
// or one that does not give them to us, is followed without them.
//
// # Concurrency
//
// A Source is run once, by Run, which returns when its context ends or the
// source can not work at all, and leaves nothing running. Batches are delivered
// one at a time, from goroutines of the source, so the receiver should return
// soon.
//
// # Errors
//
// What is wrong with a single object or file is logged and skipped, and the
// last good state of it is kept. Run's own error means that there is nothing to
// watch: a directory that does not exist, a kubeconfig that does not parse.
package source
