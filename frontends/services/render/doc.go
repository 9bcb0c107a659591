// Package render turns the local model into one fragment of ruleset and, from
// then on, into patches of it.
//
// The ruleset has a constant number of objects; only map elements grow with the
// Services (but for session affinity, below). Each address, protocol and port
// that a Service answers on is a listener. A listener's endpoints sit in numbered slots
// of the map endpoints, the ones that get new flows in slots 0 to N-1 without a
// gap, and its entry in the map services sends it to the chain pick-N, which all
// listeners with N endpoints share. So an endpoint that is replaced costs one
// element, and one that comes or goes two or three, however many there are. Behind
// the N slots a UDP listener keeps the endpoints that drain, and those that serve by
// another policy: no packet is sent there, but the aggregator, which flushes UDP
// flows to what left the map, sees that they are not gone.
//
// What else a chain does before it picks is in its name: there is one table of such
// kinds of chains (targets), and one loop over it.
//
//	pick-N            from inside of the cluster: the source stays
//	external-pick-N   from outside, policy Cluster: marked for masquerading
//	local-pick-N      from outside, policy Local: first the shortcut, below; then
//	                  one of the slots from 1000000 on, whose endpoints are local
//	nodeport-...      the same without address in the keys
//	...sticky-N       with session affinity
//
// # Policy Local
//
// This node's pods and processes need not keep to the policy Local for traffic from
// outside. The chain shortcut finds them by their source, and looks the listener up in
// the map shortcuts, which sends it to all endpoints; nodes are masqueraded then.
// Where a Service has no endpoint here the listener goes to shortcut alone, and what
// comes back from there is dropped by the map no-endpoint-services.
//
// # Session affinity
//
// Each port has a map from client to endpoint that packets fill, and each endpoint
// of such a port a chain, which the slots of the map sticky-endpoints go to. The
// chain says "update @affinity-... { ip saddr timeout 3h : ENDPOINT }", which leaves
// the endpoint of a client alone that has one and begins its time anew, and then
// sends the flow to what the map has. So one random pick and one rule do for old
// clients and new ones. The policy Local has a map and chains of its own; an
// endpoint that is in both lists is remembered in both. Chains of endpoints that
// left are emptied at once, so that the aggregator purges the map of them, and
// removed with the maps by Sweep.
//
// # Lookups
//
// The first packet of a flow from a pod to a ClusterIP is looked up four times: in
// services, the protocols that have ports, endpoints and hairpin. Later packets pass
// a comparison of the conntrack state where they are forwarded or leave the node, and
// nothing else. DATAPLANE.md in the directory above counts the rules that packets
// pass, and has the measurements by which the rules are as they are.
//
// # Chains on demand
//
// Each chain on a hook costs every packet something, also where its first rule ends
// it. So the chains that look up source ranges, and the one on input that finds listeners that
// have no endpoints, are there only while there is something to look up. They come in
// the same patch as the first element. A patch that is refused has to be followed by a
// snapshot, as client.Session does it: nothing else would bring them again. They go
// with Sweep, so a Service that comes and goes moves no hook.
//
// # Cost
//
// An update costs what differs: the listeners of the Services that changed, and of
// their endpoints those that came, went or moved. How much else there is does not
// matter; Renderer.Work counts it. For that all listeners of a port share a pool of
// slots, which is changed in place, and which has an index if it is large. A listener
// that comes or goes, moves to another port, or turns to the other list of endpoints
// costs all of its slots.
//
// The package does no I/O, and does not judge Services: package model has done
// that. It escapes nothing, as all that it prints are addresses, numbers and
// the names of Kubernetes objects; the names of interfaces in its configuration
// are checked.
//
// # Concurrency
//
// A Renderer is not safe for concurrent use. The messages that it returns are
// not touched by it again.
package render
