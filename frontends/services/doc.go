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
// Frontend.Run runs three goroutines: the source delivers events, which only mark
// Services dirty, while the second one publishes what has become of them, one
// update in flight at a time; what arrives meanwhile is in the next one. The third
// opens and closes the ports of health checks (package health).
//
// # Health
//
// A change is queued from the arrival of its event until the commit that carries
// it, or until it turns out to need none. Once one is queued for twice
// Config.SyncPeriod the node is not healthy; a Service that is left out as it is
// refused does not count. What answers for the state of the kernel, the health
// checks of Services and some metrics, learns of a change only with its commit.
// A failed update is sent again as a whole, first after a second and then at most
// every Config.SyncPeriod. There is no full sync every hour, as kube-proxy has it:
// the aggregator compares and repairs whatever others change in the kernel.
//
// For /healthz alone the node must also be one that load balancers may use: its Node
// object is there, whatever the source, and not about to be deleted.
//
// # Errors
//
// Run ends with an error only if it can never work: the source has nothing to
// read, or another process has taken over the fragment. A Service that the
// aggregator refuses is left out, logged with the reason, reported as an event of
// the Service, and tried again later; the others are published without it. Where
// one IP family is refused as a whole, its table stays as it is, and the other goes
// on; if Services have addresses of it, the node is unhealthy after a while. While no aggregator answers, Run waits.
package services
