// Package policy is the Kubernetes NetworkPolicy frontend: it follows NetworkPolicies,
// ClusterNetworkPolicies, the pods and namespaces that they select, and the node's Node
// object, and publishes the rules of this node for them as one fragment over the
// aggregator's socket.
//
//	source (manifests | kube API) -> objects -> model (node-local) -> render (fragment, patches) -> publish -> aggregator
//
// The package connects these parts, in frontend.go: state.go has the model, content.go is
// the fragment for package publish, and observer.go passes commits on to metrics and events.
// The first update waits in start.go. flows.go cuts the connections that are not allowed any
// more, through the aggregator: package judge decides which. With Config.RuntimeSocket the
// container runtime reports pods too, before the API does: runtime.go connects package nri.
// With Config.StatusClient package status writes conditions of ClusterNetworkPolicies.
// bridge.go warns if packets between pods do not pass the rules, interfaces.go names the pods
// whose interfaces are not known.
// It needs no capability and uses no kernel interface; rules cross the socket as text.
// Nothing is published before the source has delivered everything that exists: after a
// restart the rules of the process before stay until then. What a packet sees while an update
// is committed is in the documentation of package render. A number such as "rule 52" in a
// comment is that of a row in BEHAVIOUR.md.
//
// # Concurrency
//
// The source delivers events from its goroutines, which only change the model under its
// lock. Frontend.Run publishes the changes on its own goroutine, with one update in flight
// at a time (package publish), and wakes it once a minute for what depends on time.
// Connections are listed on another goroutine, so that no update waits for that.
//
// # Errors
//
// Run ends with an error only if another process publishes the fragment. A policy that the
// aggregator rejects accepts nothing: the pods that it applies to stay isolated. The reason
// is logged, reported as an event of the policy, and the policy is tried again later; the
// others are published. While no aggregator answers, Run waits.
package policy
