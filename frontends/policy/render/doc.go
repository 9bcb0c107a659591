// Package render turns the model of network policies into the ruleset of this node.
//
// It takes changes of package model and returns one fragment, then patches. Read class.go first
// (the chains of a pod), then hook.go (the rules that lead there), and update.go. The package does
// no I/O and does not judge policies. DATAPLANE.md in the parent directory shows the path of a
// packet.
//
// # The ruleset
//
// The tables ip weft-policy and ip6 weft-policy are twins. The maps ingress and egress lead from
// the address of a pod to the chain of its policies in the direction, which replicas share. The
// chain jumps to a chain of each NetworkPolicy and then drops. The ClusterNetworkPolicies of a tier
// share one chain, before or instead of the drop. Each selector is a set, and so is each list of
// address blocks or ranges of ports. Rules for a selector are left out until it has had a member,
// because the kernel walks a list of the table's sets for each declared or named set. All rules
// match the connection's tuple in conntrack, not the packet's headers: the opener's address and,
// after destination NAT, the other end's. So they judge packets of both directions, replies
// included.
//
// The maps egress-links and ingress-links have the host's ends of pods' interfaces as keys
// (end.go). The table bridge weft-policy binds the ports of bridges to addresses (bridge.go). The
// map untracked leads to chains for packets without a connection (lookup.go).
//
// # A chain never changes
//
// The name of a chain or set has a content hash, so changed content is a new object. Only the
// members of sets of pods and the chains on hooks change in place. A changed policy gets new
// chains, and its pods get new elements in the maps. Unused objects stay until Cleanup and are
// reused if needed again.
//
// The aggregator commits new chains before the elements that lead to them, so that no packet meets
// an empty chain.
//
// The names of counters have no hash, so they go on when a policy changes. A counter belongs to a
// rule, such as "shop/db ingress[0]", or to the drops of a class.
//
// # What a packet sees during a commit
//
// The kernel reads the elements of maps and sets at each lookup. If a commit happens between two
// lookups, a packet may find the old chain of a pod and the new members of a set, or the reverse.
// If both the policies of a pod and its peers' labels change, such a packet may be accepted against
// both the old and the new rules, for some microseconds. A second commit would not help: either
// order shows the mixture for much longer. A copy of each changed set would, at a cost proportional
// to its members.
//
// A connection that begins so does not last. The accepting rules are in the chain that the pod
// lost, or name the set that the peer left. So one end counts as narrowed, and the connection is
// judged again and cut.
//
// # Large sets
//
// A set gets 4,096 new members in a patch; Pending is true until it is full. A pod without a chain
// is isolated with the first patch and accepts its peers later. A pod with a chain keeps it until
// the sets of the new chain are full.
//
// # Connections
//
// The packets of established connections pass one rule. If an address is allowed less than before,
// it enters the set recheck, and each packet of the connections is judged again. No rule looks up
// an empty set. With more than 16,384 addresses all connections are judged again. The caller lists
// the connections of the addresses from Rechecked, asks Judge which are denied, and ends the other
// rechecks with EndRecheck. Otherwise they end after Config.RecheckFor: see LimitRecheck.
//
// # Large policies
//
// If a NetworkPolicy has more than 100 rules, its rules with equal ports are joined. If more than
// 100 remain, a map leads from the port to a chain of the port's rules. A patch declares chains and
// sets up to a size for about 100 ms of kernel time, the present change first. Pods move to them
// with the last patch. Until then, a pod without a chain gets one that drops everything. A policy
// with more than 20,000 rules after this is left out, and LeftOut says so.
//
// # Fail closed
//
// A policy that is left out does not accept anything: its pods stay isolated. A
// ClusterNetworkPolicy that is left out drops, because its denied traffic is unknown.
//
// # Restart
//
// Names are the same in every process, so a restart with the same objects makes no change. Restore
// adopts the set recheck, and adds the addresses narrowed meanwhile.
//
// # Cost
//
// The cost of an update is proportional to the changed members of sets, pods, and pods with a
// changed policy. Renderer.Work counts it.
//
// # Concurrency
//
// A Renderer is safe for concurrent use. It does not modify returned messages.
//
// # Errors
//
// Only New returns an error. An unknown action or kind of object is a bug, and panics.
package render
