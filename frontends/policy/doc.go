// Package policy is the Kubernetes NetworkPolicy frontend. It follows NetworkPolicies,
// ClusterNetworkPolicies, the pods and namespaces that they select, and the node's Node object. It
// publishes the rules of this node as one fragment over the aggregator's socket.
//
//	source (manifests | kube API) -> objects -> model (node-local) -> render (fragment, patches) -> publish -> aggregator
//
// The package connects these parts, in frontend.go: state.go has the model, content.go is the
// fragment for package publish, and observer.go passes commits on to metrics and events. The first
// update waits in start.go. flows.go cuts connections denied by package judge, through the
// aggregator. With Config.RuntimeSocket the container runtime reports pods before the API does:
// runtime.go connects package nri. With Config.StatusClient package status writes conditions of
// ClusterNetworkPolicies. bridge.go warns if packets between pods bypass the rules. interfaces.go
// names pods with unknown interfaces.
//
// The package needs no capability and uses no kernel interface; rules cross the socket as text. It
// publishes after the source has delivered all existing objects: after a restart the earlier rules
// stay until then. Package render documents the view of a packet during a commit. A number such as
// "rule 52" in a comment is a row of testdata/behaviour.txt.
//
// # Concurrency
//
// The source delivers events from its goroutines, which only change the model under its lock.
// Frontend.Run publishes the changes on its own goroutine, with one update in flight at a time
// (package publish), and wakes it once a minute for timed work. Another goroutine lists
// connections, so that updates do not wait.
//
// # Errors
//
// Run returns an error only if another process publishes the fragment. A rejected policy does not
// accept traffic: its pods stay isolated. The reason is logged and reported as an event of the
// policy, and the policy is retried later; the others are published. While no aggregator answers,
// Run waits.
package policy
