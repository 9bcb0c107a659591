// Package render turns the local model into the ruleset of this node.
//
// It takes changes of package model and returns one fragment, then patches. It does no I/O and does not judge
// Services. Rules contain names of Kubernetes objects without escaping; interface names are validated.
//
// A listener is an address, protocol and port on which a Service accepts flows. Its endpoints are in numbered
// slots of the map endpoints; slots 0 to N-1 get new flows. Its element in the map services sends flows to
// the chain pick-N, shared by all listeners with N endpoints. After its N slots, a UDP listener has the
// draining endpoints and the endpoints serving only under the other policy. They get no new flows and keep
// their UDP flows, which the aggregator removes if an endpoint leaves the map. Without session affinity, only
// elements grow with Services and endpoints.
//
// The name of a chain says its effect; kinds.go has all names:
//
//	pick-N            from inside the cluster: the source stays
//	external-pick-N   from outside, policy Cluster: marked for masquerading
//	local-pick-N      from outside, policy Local: first the shortcut, below; then
//	                  a local endpoint from the slots 1000000 on
//	nodeport-...      the same without an address in the keys
//
// With session affinity, the port's chain recall-... precedes the pick chain. With source ranges,
// limited-ID-... precedes both. DATAPLANE.md in the parent directory has rule counts and measurements.
//
// # Policy Local
//
// The policy Local does not apply to pods and processes of this node that use external addresses. The chain
// shortcut recognizes them by source and sends them to all endpoints through the map shortcuts; processes are
// masqueraded. Without a local endpoint, a listener goes only to shortcut, and the map no-endpoint-services
// drops packets returning from shortcut.
//
// # Session affinity
//
// Each port has a map from client to endpoint and a set of endpoints; with the policy Local each list has
// both. The port's chain recall-PORT translates the destination to the client's endpoint. Unknown clients go
// on to the shared chain sticky-N, which picks a slot like pick-N.
//
// For the first packet of a flow, after destination NAT, the chains nat-remember-postrouting and
// nat-remember-input find the port by the original destination:
//
//	ip daddr . th dport @endpoints-PORT update @affinity-PORT { ip saddr timeout 3h : ip daddr . th dport }
//
// The update keeps a known client's endpoint and restarts its timeout. The set excludes endpoints that left
// and destinations of other programs' rules. From the rule the aggregator knows that the map's values are
// keys of the set, and removes the entries of endpoints that left.
//
// If the map is full, a new client gets a random endpoint each time.
//
// # Counters
//
// A count of connections stays while the same Service has the listener.
//
// # Chains on demand
//
// Each chain on a hook costs every packet. So the chains for source ranges, and the input chain for listeners
// without endpoints, exist only while needed. The patch with the first element declares them. Follow a
// rejected patch by a snapshot, because no later patch declares them; client.Session does this if
// SessionConfig.Snapshot is set.
//
// # Cost
//
// An update costs the changed Services' listeners and their changed endpoints; see Renderer.Work. A listener
// that is added, removed, or switched to another port or list costs all its slots.
//
// # Concurrency
//
// A Renderer is safe for concurrent use. It does not modify messages after returning them.
package render
