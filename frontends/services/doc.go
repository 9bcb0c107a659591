// Package services is the Kubernetes Service frontend. It follows Services, EndpointSlices, ServiceCIDRs
// and the Node, and publishes this node's rules as one fragment to the aggregator's socket.
//
//	source (manifests | kube API) -> objects -> model (node-local) -> render (fragment, patches) -> publish -> aggregator
//
// frontend.go connects these parts. state.go has the model, content.go the fragment, and observer.go
// passes commits to metrics and health checks. The package needs no capability and uses no kernel
// interface; rules cross the socket as text. It publishes only after the source has delivered all
// existing objects, so a restart does not withdraw rules. "rule 100" in a comment is a row of
// testdata/behaviour.txt.
//
// # Concurrency
//
// The source's goroutines only mark Services dirty. Frontend.Run has two goroutines: one publishes, with
// one update in flight (package publish), and one opens and closes health check ports (package health).
//
// # Health
//
// A change waits from its event's arrival until its commit, or until it needs none. If one waits for
// twice Config.SyncPeriod, the node is unhealthy. Rejected Services do not count. Health checks of
// Services and kernel metrics change only with a commit. Unlike kube-proxy there is no hourly full sync:
// the aggregator repairs changes by others.
//
// For /healthz, load balancers must also be allowed to use the node: its Node object exists and is not
// about to be deleted.
//
// # Errors
//
// Run fails only if another process publishes the fragment. A rejected Service is left out, logged,
// reported as an event and retried; other Services are published. If a whole IP family is rejected, its
// table stays and the other family continues. If Services have addresses in it, the node becomes
// unhealthy. Run waits while no aggregator answers.
package services
