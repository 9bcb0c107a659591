// Package policy is the Kubernetes NetworkPolicy frontend: it publishes the rules of this node for
// NetworkPolicies and ClusterNetworkPolicies as one fragment.
//
//	source (manifests | kube API) -> objects -> model (node-local) -> render (fragment, patches) -> publish -> aggregator
//
// frontend.go connects these parts. The first update waits in start.go. flows.go cuts connections
// denied by package judge.
//
// The package needs no capability and uses no kernel interface. A number such as "rule 52" in a
// comment is a row of testdata/behaviour.txt.
//
// # Concurrency
//
// The source's goroutines change the model under its lock. Frontend.Run publishes the changes on
// its own goroutine, with one update in flight. Another goroutine lists connections, so that
// updates do not wait.
//
// # Errors
//
// Run returns an error only if another process publishes the fragment; without an aggregator it
// waits. A rejected policy does not accept traffic, is reported, and is retried later.
package policy
