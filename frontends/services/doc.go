// Package services is the Kubernetes Service frontend. It follows Services, EndpointSlices, ServiceCIDRs
// and the Node, and publishes this node's rules as one fragment to the aggregator's socket.
//
//	source (manifests | kube API) -> objects -> model (node-local) -> render (fragment, patches) -> publish -> aggregator
//
// The package needs no capability and uses no kernel interface. "rule 100" in a comment is a row of
// testdata/behaviour.txt.
//
// # Concurrency
//
// The source's goroutines only mark Services dirty. Frontend.Run has three goroutines: one publishes, and
// two open and close health check ports, and NodePorts on loopback addresses. With
// Config.PodsSocket a fourth follows the kubelet, and marks Services too.
//
// # Health
//
// Rejected Services do not make the node unhealthy; see Config.SyncPeriod. There is no hourly full sync: the
// aggregator repairs changes by others.
//
// # Errors
//
// Run fails only if another process publishes the fragment. A rejected Service is left out, logged, reported
// as an event and retried. If a whole IP family is rejected, its table stays and the other family continues.
package services
