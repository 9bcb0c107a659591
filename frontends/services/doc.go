// Package services is the Kubernetes Service frontend: it follows Services,
// EndpointSlices and the node's Node object, and publishes what this node should
// do for them as one fragment over the aggregator's socket.
//
//	source (manifests | kube API) -> model (node-local) -> render (fragment, patches) -> aggregator/client
//
// It needs no capability and touches no kernel interface; rules cross the socket
// as text. Nothing is published before the source has delivered everything that
// existed at the start, so a restart never withdraws what is merely not known
// yet.
//
// # Concurrency
//
// Frontend.Run runs two goroutines: the source delivers events, which only mark
// Services dirty, while the other one publishes what has become of them, one
// update in flight at a time; what arrives meanwhile is in the next one.
//
// # Errors
//
// Run ends with an error only if it can never work: the source has nothing to
// read, or another process has taken over the fragment. A Service that the
// aggregator refuses is left out, logged with the reason and tried again later;
// the others are published without it. While no aggregator answers, Run waits.
package services
