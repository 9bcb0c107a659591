// Package render turns the model of network policies into the ruleset of this node.
//
// In come changes of package model; out go one fragment, and from then on patches of it.
// Read class.go first, which has the chains of a pod, then hook.go, which leads there, and
// update.go. The package does no I/O and does not judge policies: package model has done
// that. DATAPLANE.md in the parent directory shows what packets pass.
//
// # The ruleset
//
// The tables ip weft-policy and ip6 weft-policy are twins. The maps ingress and egress
// lead from the address of a pod to the chain of its class: of the list of policies that
// apply to it in the direction, which replicas share. That chain jumps to a chain of each
// NetworkPolicy, and drops in the end; the ClusterNetworkPolicies of a tier are one after
// the other in one chain before that, or in place of the drop. Each selector is a set, and
// each list of address blocks or ranges of ports, too. Until a selector has had a member, the rules
// that would name its set are left out: no packet matches them, and the kernel walks a list of the
// table's sets for each that is declared or named. All rules match the connection's
// tuple, as conntrack knows it, and not the packet's headers: the addresses of the end that
// opened it and of the end that it leads to after destination NAT. So they judge packets of
// both directions, replies included.
//
// The maps egress-links and ingress-links do the same for the host's end of a pod's interface
// (end.go), and the table bridge weft-policy binds the ports of bridges to addresses (bridge.go).
// The map untracked leads to chains for packets without a connection (lookup.go).
//
// # A chain never changes
//
// The name of a chain or set has a hash of its content. Another content is another object
// beside it, except for the members of sets of pods; only chains on hooks change in place.
// The change of a policy is therefore new chains, and new elements of the pods in the maps.
// What has lost its use stays until Cleanup, and is used again if it comes back.
//
// The aggregator commits new chains before the elements that lead to them, so that no packet
// meets an element with a chain that is still empty.
//
// Counters are named objects of their own. Their names have no hash of the rules, so they
// go on when a policy changes: a counter is that of "shop/db ingress[0]", or of what the
// policies of a class drop.
//
// # What a packet sees during a commit
//
// The elements of maps and of sets change in one commit, but the kernel looks at each of them
// when a packet comes to it. A packet that is between two lookups at that moment may find the
// chain of a pod from before and the members of a set from after, or the other way round. If
// one update changes both the policies of a pod and the labels of its peers, such a packet
// may be accepted although the rules accept it neither before nor after; it takes some
// microseconds. A second commit would not help: moving the pod first and changing the members
// first both show packets such a mixture, and for much longer. Only a copy of each changed
// set would, which costs as much as the set has members.
//
// A connection that begins so does not last. The rules that accepted its packet are in the
// chain that the pod lost, or name the set that the peer left. Either end then counts as
// narrowed: the connection is judged again, and cut.
//
// # Large sets
//
// A set gets 4,096 new members in a patch; Pending is true until it has all. A pod that has
// no chain yet gets it with the first patch: it is isolated first, and what it accepts
// comes after that. A pod that has a chain keeps it until the sets of the new one are full.
//
// # Connections
//
// The packets of established connections pass one rule. If less is allowed to an address
// than before, it is in the set recheck, and each packet of its connections is judged
// again. While the set is empty, no rule looks it up; with more than 16,384 addresses all
// connections are judged again. The caller lists the connections of the addresses that
// Rechecked returns, asks Judge which are denied, and ends the recheck of the others with
// EndRecheck. If it cannot, Config.RecheckFor does: see LimitRecheck.
//
// # Large policies
//
// The rules of a NetworkPolicy with more than 100 rules that have the same ports are
// joined. If there are still more than 100, a map from the port leads to the chain of the
// rules for it. Chains and sets are declared up to a size in a patch that takes the kernel about
// 100 ms, those of the present change first. Pods move to them with the last ones. A pod without a chain gets one that accepts
// nothing until then. A policy with more than 20,000 rules after that is left out, and LeftOut
// says so.
//
// # Fail closed
//
// A policy that is left out accepts nothing: the pods that it isolates stay isolated. A
// ClusterNetworkPolicy that is left out drops, because what it denies is not known.
//
// # Restart
//
// The names are the same in every process, so a restart with the same objects changes
// nothing. Restore adopts the set recheck, and adds to it what changed meanwhile.
//
// # Cost
//
// An update costs what differs: members of sets, pods and the pods with a changed policy.
// Renderer.Work counts it.
//
// # Concurrency
//
// A Renderer is safe for concurrent use. It does not modify the messages that it has
// returned.
//
// # Errors
//
// Only New returns an error. An unknown action or kind of object is a bug, and panics.
package render
