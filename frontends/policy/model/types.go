package model

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/source/network"
)

// Direction is the direction of traffic as its pod sees it, usable as an index.
type Direction uint8

// The directions.
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

// The protocols of policies.
const (
	TCP  = network.TCP
	UDP  = network.UDP
	SCTP = network.SCTP
)

// Tier orders policies: a lower tier decides first.
type Tier uint8

// The tiers.
const (
	// TierAdmin has ClusterNetworkPolicies of the tier Admin.
	TierAdmin Tier = iota
	// TierNetworkPolicy has NetworkPolicies. They isolate their pods in their directions: traffic
	// without an accepting policy is dropped.
	TierNetworkPolicy
	// TierBaseline has ClusterNetworkPolicies of the tier Baseline. They decide only for pods that
	// are not isolated.
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
	// Priority orders the ClusterNetworkPolicies of a tier, lowest first; equal priorities are
	// ordered by name. It is 0 for a NetworkPolicy.
	Priority int32
	// Rules are in the order of decision.
	Rules [NumDirections][]Rule
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

// Rule matches traffic if the other end and the destination port match. The zero Rule never
// matches: see Any and AllPorts.
type Rule struct {
	// Name is "ingress[0]", followed by the name of a ClusterNetworkPolicy's rule: `egress[2]
	// "to-dns"`.
	Name   string
	Action Action
	// Any means that every other end matches, inside the cluster or not; Pods and Blocks are empty.
	// Otherwise, an end in one of Pods or Blocks matches.
	Any bool
	// Pods are sets of pods, without duplicates.
	Pods []SetID
	// Blocks are ranges of addresses, for each family sorted, disjoint and not adjacent, IPv4
	// first.
	Blocks []Range
	// AllPorts means that every protocol and port matches, ICMP included; Ports and NamedPorts are
	// empty. Otherwise, a destination in one of these matches.
	AllPorts bool
	// Ports are ranges, for each protocol sorted, disjoint and not adjacent.
	Ports []PortRange
	// NamedPorts are sets of destinations with Set.Ports true.
	NamedPorts []SetID
}

// Range is an inclusive range of addresses in the same family.
type Range struct{ First, Last netip.Addr }

// PortRange is an inclusive range of ports of a protocol. First and Last are 0 for all ports.
type PortRange struct {
	Protocol    Protocol
	First, Last uint16
}

// SetID identifies a set by the canonical form of its selection. Equal selectors have equal IDs in
// every process.
type SetID string

// Set is a set of pods of the cluster, or of their named ports.
type Set struct {
	ID SetID
	// Ports is true if members have a protocol and a port besides the address.
	Ports bool
	// Comment describes the set in the ruleset, such as "shop: app=api".
	Comment string
}

// Member is a member of a set. Protocol and Port are 0 unless Set.Ports is true. It is comparable.
type Member struct {
	Addr     netip.Addr
	Protocol Protocol
	Port     uint16
}

// Pod is a pod of this node with its own address, not in the host's network. It is immutable.
type Pod struct {
	UID  types.UID
	Name types.NamespacedName
	// Addresses are the pod's addresses without an older owner on this node, sorted, at most one of
	// each family. Addresses routed to its interface without a pod follow.
	Addresses []netip.Addr
	// Link is the host's end of the pod's interface.
	Link Link
	// Policies apply in each direction, ordered by tier, priority, namespace and name. They include
	// policies of other local pods with one of Addresses. A policy of TierNetworkPolicy isolates
	// the pod in its direction.
	Policies [NumDirections][]PolicyID
}

// Node is the used part of this node's Node object.
type Node struct {
	Name string
	// Addresses are the node's own addresses.
	Addresses []netip.Addr
	// PodCIDRs are the addresses of the pods of this node, masked.
	PodCIDRs []netip.Prefix
}

// PodChange is a changed pod. Old is nil for a new pod, New for a removed one.
type PodChange struct{ Old, New *Pod }

// PolicyChange is a changed policy. Old is nil if it did not apply to a local pod, New if it no
// longer does.
type PolicyChange struct{ Old, New *Policy }

// SetChange is a changed set. A set exists while a rule of a local policy names it. A new set has
// all its members in Added; Removed is empty for a removed set.
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
	// Narrowed are addresses of possibly denied established connections: of local pods that are new
	// or allowed less, and of members that left a set or entered a set of a denying rule. Sorted,
	// without duplicates. A change that only allows more narrows no address.
	Narrowed []netip.Addr
	// Node is nil if the node is unchanged.
	Node *Node
}

// Empty reports whether there is no change.
func (c *Changes) Empty() bool {
	return len(c.Pods) == 0 && len(c.Policies) == 0 && len(c.Sets) == 0 && len(c.Narrowed) == 0 && c.Node == nil
}
