// Package render turns the local model into the ruleset of this node.
//
// In come changes of package model; out go one fragment, and from then on patches of it.
// Read render.go first, then update.go. The package does no I/O and does not judge
// Services: package model has done that. It escapes nothing, because all that it prints
// are addresses, numbers and the names of Kubernetes objects; the names of interfaces in
// its configuration are validated.
//
// The ruleset has a constant number of objects, except for the ports with session
// affinity. Only elements grow with the Services and endpoints. A listener is an address, protocol and port on which a
// Service accepts flows. The endpoints of a listener are in numbered slots of the map
// endpoints; those that get new flows have the slots 0 to N-1. The listener's element in
// the map services sends a flow to the chain pick-N, which all listeners with N endpoints
// share. A replaced endpoint is therefore one element, and one that is added or removed
// two or three, however many there are. After its N slots a UDP listener has the endpoints
// that are draining, and those that serve only under the other policy: no packet is sent
// to them, but the aggregator, which removes UDP flows to endpoints that left the map,
// sees that they still exist.
//
// The name of a chain says what else it does before it picks. The table targets has all
// kinds of chains:
//
//	pick-N            from inside the cluster: the source stays
//	external-pick-N   from outside, policy Cluster: marked for masquerading
//	local-pick-N      from outside, policy Local: first the shortcut, below; then
//	                  one of the slots from 1000000 on, whose endpoints are local
//	nodeport-...      the same without an address in the keys
//
// With session affinity a chain of the port precedes a chain that picks: recall-... With source
// ranges limited-ID-... precedes both, and drops what sources-ID does not let pass.
//
// # Policy Local
//
// The policy Local does not bind the pods and processes of this node for traffic from
// outside. The chain shortcut recognizes them by their source, and looks the listener up
// in the map shortcuts, which sends them to all endpoints; processes of the node are
// masqueraded. If a Service has no endpoint on this node, its listener goes to shortcut
// only, and the map no-endpoint-services drops what returns from there.
//
// # Session affinity
//
// Each port has a map from client to endpoint, which packets fill, and a set of its
// endpoints; with the policy Local each list has both. No rule depends on the number of
// endpoints. The listener's element in the map services sends a flow to a chain of the
// port, recall-PORT, which translates the destination to the endpoint of the client. A
// client without one goes on to the shared chain sticky-N, which picks a slot like pick-N.
//
// The nat chains nat-remember-postrouting and nat-remember-input, which the kernel runs for
// the first packet of a flow, find the port by the original destination. There the packet
// goes to the endpoint already, so the value of the new entry is a field of the packet:
//
//	ip daddr . th dport @endpoints-PORT update @affinity-PORT { ip saddr timeout 3h : ip daddr . th dport }
//
// The update keeps the endpoint of a client that has one, and restarts its timeout. An
// endpoint in both lists is remembered in both. The set keeps out endpoints that left, and
// destinations of other programs' rules. The aggregator removes the entries of an endpoint
// that left the set. It knows from the rule that values of the map are keys of the set.
//
// If the first two flows of a client come at the same time, the second one may be sent on
// before the endpoint of the first one is remembered. It may then go to another endpoint;
// all later ones follow the first. The same holds for kube-proxy. If the map is full, a new
// client gets a random endpoint each time.
//
// # Counters
//
// With CountServices the chains that pick look the listener up in the set
// service-connections, or nodeport-connections, whose elements have counters. An element
// stays as long as its listener is the same Service's, whatever happens to the endpoints,
// and so does what it has counted. Packets that are dropped or rejected are counted by
// reason in named counters. With CountEndpoints slots have counters too. See counters.go.
//
// # Lookups
//
// The first packet of a flow from a pod to a ClusterIP is looked up five times: in
// services, service-connections, the protocols that have ports, endpoints and hairpin. Later packets pass one
// comparison of the conntrack state where they are forwarded or leave the node.
// DATAPLANE.md in the parent directory counts the rules that packets pass, and has the
// measurements behind the rules.
//
// # Chains on demand
//
// Each chain on a hook costs every packet something. The chains that look up source
// ranges, and the one on input that finds listeners without endpoints, therefore exist
// only while there is something to look up. They are declared in the same patch as the
// first element. A rejected patch must be followed by a snapshot, because no other patch
// declares them; client.Session does that if it has SessionConfig.Snapshot. Cleanup
// removes them, so a Service that comes and goes does not change hooks.
//
// # Cost
//
// An update costs what differs: the listeners of the changed Services, and the endpoints
// of these that were added, removed or moved. Renderer.Work counts it. All listeners of a
// port share a pool of slots, which is changed in place and has an index if it is large.
// A listener that is added or removed, or that changes to another port or list of
// endpoints, costs all of its slots.
//
// # Concurrency
//
// A Renderer is safe for concurrent use. It does not modify the messages that it has
// returned.
package render
