// Package render turns the model of network policies into the ruleset of this node.
//
// It takes changes of package model and returns one fragment, then patches. It does no I/O and does
// not judge policies. DATAPLANE.md in the parent directory shows the path of a packet.
//
// # The ruleset
//
// The tables ip weft-policy and ip6 weft-policy are twins. The maps ingress and egress lead from
// the address of a pod to the chain of its policies in the direction, shared by replicas. The chain
// jumps to a chain of each NetworkPolicy and then drops. The ClusterNetworkPolicies of a tier share
// one chain, before or instead of the drop. Each selector, and each list of address blocks or
// ports, is a set. Rules for a selector are left out until it has had a member, because the kernel
// walks a list of the table's sets for each named set. All rules match the connection's tuple in
// conntrack, not the packet's headers, and so judge replies too.
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
// The names of counters have no hash, so they go on when a policy changes.
//
// # What a packet sees during a commit
//
// The kernel reads maps and sets at each lookup. A packet during a commit may find the old chain of
// a pod and the new members of a set, or the reverse. If both change, such a packet may be accepted
// against both the old and the new rules.
//
// A connection that begins so does not last: one end counts as narrowed, and the connection is
// judged again and cut.
//
// # Large sets
//
// A set gets 4,096 new members in a patch; Pending is true until it is full. A pod with a chain
// keeps it until the sets of the new chain are full.
//
// # Connections
//
// The packets of established connections pass one rule. An address that is allowed less than before
// enters the set recheck, and each packet of its connections is judged again. With more than 16,384
// addresses, all connections are. The caller lists the connections of the addresses from Rechecked,
// asks Judge for denied ones, and ends the other rechecks with EndRecheck.
//
// # Large policies
//
// If a NetworkPolicy has more than 100 rules, rules with equal ports are joined. If more than 100
// remain, a map leads from the port to a chain of the port's rules. A patch declares objects up to
// about 100 ms of kernel time, the present change first; pods move to them with the last patch. A
// policy with more than 20,000 rules after this is left out, and LeftOut says so.
//
// # Fail closed
//
// A NetworkPolicy that is left out isolates its pods. A ClusterNetworkPolicy that is left out
// drops.
//
// # Restart
//
// Names are the same in every process, so a restart with the same objects makes no change. Restore
// adopts the set recheck.
//
// # Concurrency
//
// A Renderer is safe for concurrent use. It does not modify returned messages.
//
// # Errors
//
// Only New returns an error. An unknown action or kind of object is a bug, and panics.
package render
