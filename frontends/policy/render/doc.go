// Package render turns the model of network policies into the ruleset of this node.
//
// It turns changes of package model into one fragment, then patches, without I/O. DATAPLANE.md in
// the parent directory shows the path of a packet.
//
// # The ruleset
//
// The tables ip weft-policy and ip6 weft-policy are twins. The maps ingress and egress lead from
// the address of a pod to the chain of its policies in the direction, shared by replicas. The chain
// jumps to a chain of each NetworkPolicy and then drops. The ClusterNetworkPolicies of a tier share
// one chain, before or instead of the drop. Selectors, and lists of blocks or ports, are sets.
// Rules for a selector are left out until it has had a member: the kernel walks all sets for each
// named set. All rules match the connection's tuple in conntrack, not headers, and so judge replies
// too.
//
// Further maps have interfaces as keys (end.go), or lead to chains for packets without a connection
// (lookup.go). The table bridge weft-policy binds the ports of bridges to addresses (bridge.go).
//
// # A chain never changes
//
// The name of a chain or set has a content hash, so changed content is a new object. Only the
// members of sets of pods and the chains on hooks change in place. Unused objects stay until
// Cleanup.
//
// The aggregator commits new chains before the elements that lead to them, so that no packet meets
// an empty chain.
//
// Names of counters have no hash, so counters go on when a policy changes.
package render
