package model

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/source/network"
)

// Direction is that of traffic as its pod sees it, usable as an index.
type Direction uint8

// The directions.
const (
	Ingress Direction = iota
	Egress
	// NumDirections is their number.
	NumDirections
)

// String returns "ingress" or "egress".
func (d Direction) String() string {
	if d == Ingress {
		return "ingress"
	}
	return "egress"
}

// Protocol is an IP protocol number.
type Protocol = network.Protocol

// The protocols of policies.
const (
	TCP  = network.TCP
	UDP  = network.UDP
	SCTP = network.SCTP
)

// Tier orders policies: those of a lower tier decide first.
type Tier uint8

// The tiers.
const (
	// TierAdmin has ClusterNetworkPolicies of the tier Admin.
	TierAdmin Tier = iota
	// TierNetworkPolicy has NetworkPolicies. A pod that one of them selects is isolated in
	// the directions of the policy: what none of them accepts is dropped.
	TierNetworkPolicy
	// TierBaseline has ClusterNetworkPolicies of the tier Baseline, which decide only for
	// pods that are not isolated.
	TierBaseline
)

// PolicyID names a policy. It is comparable.
type PolicyID struct {
	Tier Tier
	// Namespace is empty for a ClusterNetworkPolicy.
	Namespace, Name string
}

// Policy is a policy that applies to at least one pod of this node. It is immutable.
type Policy struct {
	ID PolicyID
	// Priority orders the ClusterNetworkPolicies of a tier, lowest first; those with the
	// same priority are ordered by name. It is 0 for a NetworkPolicy.
	Priority int32
	// Rules are in the order in which they decide.
	Rules [NumDirections][]Rule
}

// Action is what a rule does with traffic that it matches.
type Action uint8

// The actions. The rules of NetworkPolicies all accept.
const (
	Accept Action = iota
	Deny
	// Pass skips the rest of the tier.
	Pass
)

// Rule matches traffic if the other end matches and the destination port does. A rule that
// names nothing at all matches nothing: see Any and AllPorts.
type Rule struct {
	// Name is "ingress[0]", or that of the rule of a ClusterNetworkPolicy after it:
	// `egress[2] "to-dns"`.
	Name   string
	Action Action
	// Any is true if every other end matches, inside the cluster or not. Then Pods and
	// Blocks are empty. Otherwise an end matches that is in one of Pods or of Blocks.
	Any bool
	// Pods are sets of pods, without duplicates.
	Pods []SetID
	// Blocks are ranges of addresses, for each family sorted, disjoint and not adjacent,
	// IPv4 first.
	Blocks []Range
	// AllPorts is true if every protocol and port matches, ICMP included. Then Ports and
	// NamedPorts are empty. Otherwise a destination matches that is in one of these.
	AllPorts bool
	// Ports are ranges, for each protocol sorted, disjoint and not adjacent.
	Ports []PortRange
	// NamedPorts are sets of destinations, of which Set.Ports is true.
	NamedPorts []SetID
}

// Range is a range of addresses of one family; both ends belong to it.
type Range struct{ First, Last netip.Addr }

// PortRange is a range of ports of a protocol; both ends belong to it. First and Last are 0
// for all ports.
type PortRange struct {
	Protocol    Protocol
	First, Last uint16
}

// SetID identifies a set: what its members are selected by, in a canonical form. Equal
// selectors have equal IDs, in every process.
type SetID string

// Set is a set of pods of the cluster, or of their named ports.
type Set struct {
	ID SetID
	// Ports is true if the members are addresses with a protocol and a port, false if they
	// are addresses.
	Ports bool
	// Comment describes the set for a reader of the ruleset, such as "shop: app=api".
	Comment string
}

// Member is a member of a set. Protocol and Port are 0 unless Set.Ports is true. It is
// comparable.
type Member struct {
	Addr     netip.Addr
	Protocol Protocol
	Port     uint16
}

// Pod is a pod of this node with at least one address of its own, not in the network of the
// host. It is immutable.
type Pod struct {
	UID  types.UID
	Name types.NamespacedName
	// Addresses are those that belong to this pod and to no older one of this node, sorted,
	// at most one of each family, and after them those that no pod has and this node routes
	// to its interface.
	Addresses []netip.Addr
	// Link is the host's end of its interface.
	Link Link
	// Policies are those that apply, for each direction, in the order in which they
	// decide: by tier, then priority, then namespace and name. The pod is isolated in a
	// direction if one of them is of TierNetworkPolicy. Those of other pods of this node
	// that have one of Addresses too are among them.
	Policies [NumDirections][]PolicyID
}

// Node is what matters of this node's Node object.
type Node struct {
	Name string
	// Addresses are all of the node's own.
	Addresses []netip.Addr
	// PodCIDRs are the addresses of the pods of this node, masked.
	PodCIDRs []netip.Prefix
}

// PodChange is a pod that differs. Old is nil for a new pod, New for one that is gone.
type PodChange struct{ Old, New *Pod }

// PolicyChange is a policy that differs. Old is nil for one that did not apply to a pod of
// this node, New for one that does not any more.
type PolicyChange struct{ Old, New *Policy }

// SetChange is a set that differs. A set exists while a rule of a policy of this node names
// it. A new one has all its members in Added; one that is gone has none in Removed.
type SetChange struct {
	Old, New       *Set
	Added, Removed []Member
}

// Changes are the result of Refresh, sorted: Pods by UID, Policies by tier, namespace and
// name, Sets by ID, members by address, protocol and port.
type Changes struct {
	Pods     []PodChange
	Policies []PolicyChange
	Sets     []SetChange
	// Narrowed are addresses of which established connections may not be allowed any more:
	// of pods of this node that are new, or to which less is allowed than before, and of
	// members that left a set, or entered one of a rule that denies. Sorted, without
	// duplicates. A change that only allows more narrows nothing.
	Narrowed []netip.Addr
	// Node is nil if the node does not differ.
	Node *Node
}

// Empty reports whether nothing changed.
func (c *Changes) Empty() bool {
	return len(c.Pods) == 0 && len(c.Policies) == 0 && len(c.Sets) == 0 && len(c.Narrowed) == 0 && c.Node == nil
}
