package model

import (
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Key names a Service.
type Key = types.NamespacedName

// Family is an IP family, usable as an index.
type Family uint8

// The families.
const (
	IPv4 Family = iota
	IPv6
	// Families is their number.
	Families
)

// String returns "IPv4" or "IPv6".
func (f Family) String() string {
	if f == IPv4 {
		return "IPv4"
	}
	return "IPv6"
}

// FamilyOf returns the family of a valid, unmapped address.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// Protocol is an IP protocol number.
type Protocol uint8

// The protocols of Services.
const (
	TCP  Protocol = 6
	UDP  Protocol = 17
	SCTP Protocol = 132
)

// String returns the name as nft and Kubernetes know it, in lower case.
func (p Protocol) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case SCTP:
		return "sctp"
	default:
		return fmt.Sprintf("protocol(%d)", uint8(p))
	}
}

// parseProtocol returns the protocol of a port; the empty string means TCP.
func parseProtocol(p corev1.Protocol) (Protocol, error) {
	switch p {
	case corev1.ProtocolTCP, "":
		return TCP, nil
	case corev1.ProtocolUDP:
		return UDP, nil
	case corev1.ProtocolSCTP:
		return SCTP, nil
	default:
		return 0, fmt.Errorf("unknown protocol %q: want TCP, UDP or SCTP", p)
	}
}

// MaxEndpoints is how many endpoints of one port are used: a bound for what one
// Service can ask of a node.
const MaxEndpoints = 1 << 18

// Service is one Service as this node sees it. It is immutable.
type Service struct {
	Name    Key
	Created time.Time
	// ClusterIPs has at most one address for each family.
	ClusterIPs [Families]netip.Addr
	// InternalLocal and ExternalLocal are true for the traffic policy Local; the
	// external one only where the Service can be reached from outside.
	InternalLocal bool
	ExternalLocal bool
	// HealthCheckNodePort is the TCP port on which load balancers ask how many
	// endpoints are on this node; 0 for none.
	HealthCheckNodePort uint16
	// Affinity is for how long after its last new flow a client keeps its
	// endpoint (session affinity ClientIP), in whole seconds; 0 is none.
	Affinity time.Duration
	// SourceRanges are who may reach the addresses of load balancers, sorted.
	// A nil list does not limit anybody.
	SourceRanges [Families][]netip.Prefix
	// LocalReady counts the distinct addresses of ready endpoints on this node, over
	// all ports, for each family. 0 without HealthCheckNodePort.
	LocalReady [Families]int
	// Ports are sorted by name and protocol.
	Ports []Port
}

// Port is one port of a Service.
type Port struct {
	// Name is empty only if the Service has a single port.
	Name     string
	Protocol Protocol
	Number   uint16
	// ClusterIPs are those of the Service where this port's claim on the
	// address, protocol and number holds; another Service may have the older one.
	ClusterIPs [Families]netip.Addr
	// External are the addresses from outside of the cluster's own ranges on
	// which this port's claim holds, sorted, without repeats.
	External [Families][]External
	// NodePort is 0 if there is none or another Service has the older claim.
	NodePort uint16
	Backends [Families]Backends
}

// External is one of a Service's externalIPs, or an address of its load
// balancer whose traffic this node takes (ipMode VIP).
type External struct {
	Addr netip.Addr
	// LoadBalancer is true for one of status.loadBalancer: SourceRanges hold.
	LoadBalancer bool
}

// Backends are the endpoints of a port in one family.
type Backends struct {
	// Cluster are those for the policy Cluster: the ready ones, or if there is
	// none, those that still serve while they terminate.
	Cluster Endpoints
	// Local are those on this node, chosen by the same rule among themselves.
	// None unless a policy of the Service is Local.
	Local Endpoints
	// Draining are the endpoints that get no new flows from Cluster but still
	// serve the ones they have. Only for UDP, where a flow ends when its
	// endpoint is gone from here.
	Draining Endpoints
}

// Prefixes are prefixes of each family, sorted, without repeats.
type Prefixes = [Families][]netip.Prefix

// Node is what matters of this node's Node object.
type Node struct {
	// Known is true once the object has been seen.
	Known bool
	Name  string
	// Addresses are the node's primary ones: of each family the first InternalIP,
	// or else the first ExternalIP, unless the configuration has one.
	Addresses [Families]netip.Addr
	// PodCIDRs are the addresses of the pods on this node.
	PodCIDRs Prefixes
	// Zone is the label topology.kubernetes.io/zone, empty if there is none.
	Zone string
	// Leaving is true while the node should get no new traffic from load
	// balancers: its object is gone or being deleted, or has the taint
	// ToBeDeletedByClusterAutoscaler.
	Leaving bool
}

// Change is a Service whose outcome differs. Old is nil for a new one, New for
// one that is gone.
type Change struct {
	Name Key
	Old  *Service
	New  *Service
}

// Changes are what Refresh found.
type Changes struct {
	// Services are sorted by name.
	Services []Change
	// Node is nil if the node does not differ.
	Node *Node
	// ServiceCIDRs are the ranges of all ClusterIPs, nil if they do not differ.
	ServiceCIDRs *Prefixes
	// Triggers are when the endpoints changed in the cluster that led to
	// Services: annotation endpoints.kubernetes.io/last-change-trigger-time.
	Triggers []time.Time
}

// Empty reports whether nothing changed.
func (c *Changes) Empty() bool {
	return len(c.Services) == 0 && c.Node == nil && c.ServiceCIDRs == nil
}

// Notice is something about a Service that who owns it should hear of.
type Notice struct {
	Service Key
	// Reason is one word, Message a sentence.
	Reason  string
	Message string
}

// Stats count what came in and what it amounted to.
type Stats struct {
	ServiceEvents     uint64
	SliceEvents       uint64
	NodeEvents        uint64
	ServiceCIDREvents uint64
	// ServiceChanges and NodeChanges are the events' real outcome.
	ServiceChanges uint64
	NodeChanges    uint64
	// Revision advances when Refresh found a change.
	Revision uint64
	// Skipped are parts of objects left out because they make no sense.
	Skipped uint64
	// Conflicts are claims that lose against another Service's, now.
	Conflicts int
	// Work is how many endpoints, slices, Services and claims were looked at, those of
	// the inside of lists included.
	Work uint64
	// Services and Slices are how many objects are held, now.
	Services int
	Slices   int
}
