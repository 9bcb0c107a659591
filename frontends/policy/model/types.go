package model

import (
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/source/network"
)

// Direction is the direction of traffic as its pod sees it.
type Direction uint8

const (
	Ingress Direction = iota
	Egress
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

const (
	TCP  = network.TCP
	UDP  = network.UDP
	SCTP = network.SCTP
)

// Tier orders policies: a lower tier decides first.
type Tier uint8

const (
	// TierAdmin has ClusterNetworkPolicies of the tier Admin.
	TierAdmin Tier = iota
	// TierNetworkPolicy has NetworkPolicies, which isolate their pods in their directions.
	TierNetworkPolicy
	// TierBaseline has ClusterNetworkPolicies of the tier Baseline, for pods that are not isolated.
	TierBaseline
)

// PolicyID names a policy. It is comparable.
type PolicyID struct {
	Tier            Tier
	Namespace, Name string
}

// OfTier returns the policies of a tier, which are adjacent in ids.
func OfTier(ids []PolicyID, t Tier) []PolicyID {
	from := slices.IndexFunc(ids, func(id PolicyID) bool { return id.Tier == t })
	if from < 0 {
		return nil
	}
	to := from
	for to < len(ids) && ids[to].Tier == t {
		to++
	}
	return ids[from:to]
}

// Policy is an immutable policy that applies to a pod of this node.
type Policy struct {
	ID PolicyID
	// Priority orders the ClusterNetworkPolicies of a tier, lowest first, then by name.
	Priority int32
	Rules    [NumDirections][]Rule
}

// Action is the effect of a rule on matching traffic.
type Action uint8

// The actions. All rules of NetworkPolicies accept.
const (
	Accept Action = iota
	Deny
	// Pass skips the rest of the tier.
	Pass
)

// Rule matches traffic if the other end and the destination port match; the zero Rule never
// matches.
type Rule struct {
	// Name is "ingress[0]" or, with the name of a ClusterNetworkPolicy's rule, `egress[2]
	// "to-dns"`.
	Name   string
	Action Action
	// Any matches every other end, also outside the cluster; Pods and Blocks are empty.
	Any bool
	// Pods have no duplicates.
	Pods []SetID
	// Blocks are sorted, disjoint and not adjacent, IPv4 first.
	Blocks []Range
	// AllPorts matches every protocol and port, ICMP included; Ports and NamedPorts are empty.
	AllPorts bool
	// Ports are sorted, disjoint and not adjacent for each protocol.
	Ports []PortRange
	// NamedPorts are sets of destinations with Set.Ports true.
	NamedPorts []SetID
}

// Range is an inclusive range of addresses in the same family.
type Range struct{ First, Last netip.Addr }

// PortRange is an inclusive range of ports; First and Last are 0 for all ports.
type PortRange struct {
	Protocol    Protocol
	First, Last uint16
}

// SetID is the canonical form of a selection, equal in every process for equal selectors.
type SetID string

// Set is a set of pods of the cluster, or of their named ports.
type Set struct {
	ID SetID
	// Ports is true if members have a protocol and a port.
	Ports bool
	// Comment describes the set, such as "shop: app=api".
	Comment string
}

// Member is a member of a set; Protocol and Port are 0 unless Set.Ports is true.
type Member struct {
	Addr     netip.Addr
	Protocol Protocol
	Port     uint16
}

// Pod is an immutable pod of this node, not in the host's network.
type Pod struct {
	UID  types.UID
	Name types.NamespacedName
	// Addresses are sorted, one of each family, without addresses of an older local owner.
	// Addresses routed to its interface without a pod follow.
	Addresses []netip.Addr
	Link      Link
	// Policies are in the order of decision, with policies of other local pods with one of
	// Addresses.
	Policies [NumDirections][]PolicyID
}

// Node is the used part of this node's Node object.
type Node struct {
	Name      string
	Addresses []netip.Addr
	// PodCIDRs are masked.
	PodCIDRs []netip.Prefix
}

// PodChange is a changed pod. Old is nil for a new pod, New for a removed one.
type PodChange struct{ Old, New *Pod }

// PolicyChange is a changed policy: Old or New is nil while it applies to no local pod.
type PolicyChange struct{ Old, New *Policy }

// SetChange is a changed set; Added has all members of a new set, Removed is empty for a removed
// one.
type SetChange struct {
	Old, New       *Set
	Added, Removed []Member
}

// Changes are the result of Refresh, sorted: Pods by UID, Policies by tier, namespace and name,
// Sets by ID, members by address, protocol and port.
type Changes struct {
	Pods     []PodChange
	Policies []PolicyChange
	Sets     []SetChange
	// Narrowed are addresses of local connections that may now be denied, sorted, without
	// duplicates: see narrowings.
	Narrowed []netip.Addr
	// Nil if unchanged.
	Node *Node
}

// Empty reports whether there is no change.
func (c *Changes) Empty() bool {
	return len(c.Pods) == 0 && len(c.Policies) == 0 && len(c.Sets) == 0 && len(c.Narrowed) == 0 && c.Node == nil
}
