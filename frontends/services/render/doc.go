// Package render turns the local model into the ruleset of this node.
//
// It takes changes of package model, and returns one fragment and then patches. Read render.go first,
// then update.go. It does no I/O and does not judge Services. It prints addresses, numbers and names of
// Kubernetes objects without escaping; interface names are validated.
//
// The number of objects is constant, except for ports with session affinity. Only elements grow with
// Services and endpoints. A listener is an address, protocol and port on which a Service accepts flows.
// Its endpoints are in numbered slots of the map endpoints; slots 0 to N-1 get new flows. Its element in
// the map services sends flows to the chain pick-N, shared by all listeners with N endpoints. Replacing
// an endpoint changes one element; adding or removing one changes two or three. After its N slots, a UDP
// listener has the draining endpoints and the endpoints that serve only under the other policy. They get
// no packets. They keep their UDP flows, which the aggregator removes if an endpoint leaves the map.
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
// limited-ID-... precedes both and drops sources that sources-ID does not accept.
//
// # Policy Local
//
// The policy Local does not apply to pods and processes of this node that use external addresses. The
// chain shortcut recognizes them by source and sends them to all endpoints through the map shortcuts;
// processes are masqueraded. Without a local endpoint, a listener goes only to shortcut, and the map
// no-endpoint-services drops packets that return from shortcut.
//
// # Session affinity
//
// Each port has a map from client to endpoint, filled by packets, and a set of its endpoints; with the
// policy Local each list has both. The rules do not depend on the number of endpoints. The listener's
// element in services leads to the port's chain recall-PORT, which translates the destination to the
// client's endpoint. Unknown clients go on to the shared chain sticky-N, which picks a slot like pick-N.
//
// For the first packet of a flow the kernel runs the nat chains nat-remember-postrouting and
// nat-remember-input. They find the port by the original destination. The packet already has the endpoint
// as its destination:
//
//	ip daddr . th dport @endpoints-PORT update @affinity-PORT { ip saddr timeout 3h : ip daddr . th dport }
//
// The update keeps a known client's endpoint and restarts its timeout. An endpoint in both lists is
// remembered in both. The set excludes endpoints that left and destinations of other programs' rules. The
// rule tells the aggregator that the map's values are keys of the set, so it removes the entries of
// endpoints that left.
//
// A client's first two flows may go to different endpoints if they come at once, as with kube-proxy;
// later flows follow the first. If the map is full, a new client gets a random endpoint each time.
//
// # Counters
//
// With CountServices the pick chains look the listener up in service-connections or nodeport-connections,
// whose elements have counters. A count stays while the same Service has the listener. Dropped and
// rejected packets are counted by reason in named counters. With CountEndpoints slots have counters too.
// See counters.go.
//
// # Lookups
//
// The first packet from a pod to a ClusterIP is looked up five times: in services, service-connections,
// the protocols that have ports, endpoints and hairpin. Later packets pass one comparison of the
// conntrack state on forward or output. DATAPLANE.md in the parent directory has rule counts and
// measurements.
//
// # Chains on demand
//
// Each chain on a hook costs every packet. So the chains for source ranges, and the input chain for
// listeners without endpoints, exist only while needed. The patch with the first element declares them.
// Follow a rejected patch by a snapshot, because no later patch declares them; client.Session does this
// if SessionConfig.Snapshot is set. Cleanup removes them, so a Service that comes and goes does not
// change hooks.
//
// # Cost
//
// An update costs the changed Services' listeners, and their endpoints that were added, removed or moved;
// see Renderer.Work. All listeners of a port share a pool of slots, which is changed in place. A changed
// endpoint is found by a scan of the packed slots, about 0.1 ms for 100,000 endpoints.
// A listener that is added, removed, or switched to another port or list costs all its slots.
//
// # Concurrency
//
// A Renderer is safe for concurrent use. It does not modify messages after returning them.
package render
