// Package services is the Kubernetes Service frontend: it follows Services,
// EndpointSlices, ServiceCIDRs and the node's Node object, and publishes the rules of
// this node for them as one fragment over the aggregator's socket.
//
//	source (manifests | kube API) -> objects -> model (node-local) -> render (fragment, patches) -> publish -> aggregator
//
// The package connects these parts, in frontend.go: state.go has the model, content.go
// is the fragment for package publish, and observer.go passes commits on to metrics and
// health checks. It needs no capability and uses no kernel interface; rules cross the
// socket as text. Nothing is published before the source has delivered everything that
// exists, so a restart does not withdraw what is not known yet. A number such as "rule
// 100" in a comment is that of a row in BEHAVIOUR.md.
//
// # Concurrency
//
// The source delivers events from its goroutines, which only mark Services dirty.
// Frontend.Run runs two goroutines: one publishes the changes, with one update in flight
// at a time (package publish), the other opens and closes the ports of health checks
// (package health).
//
// # Health
//
// A change waits from the arrival of its event until the commit that carries it, or until
// it turns out to need none. If one waits for twice Config.SyncPeriod, the node is
// unhealthy; Services that are left out because they are rejected do not count. Health
// checks of Services, and the metrics about the kernel, change only with a commit. There
// is not an hourly full sync as in kube-proxy: the aggregator compares and repairs whatever
// others change in the kernel.
//
// For /healthz the node must also be one that load balancers may use: its Node object
// exists and is not about to be deleted.
//
// # Errors
//
// Run ends with an error only if another process publishes the fragment. A Service that
// the aggregator rejects is left out, logged with the reason, reported as an event of the
// Service, and tried again later; the others are published. If one IP family is rejected
// as a whole, its table stays as it is, and the other family continues; if Services have
// addresses of it, the node becomes unhealthy. While no aggregator answers, Run waits.
package services
