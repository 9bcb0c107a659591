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

// MaxEndpoints is how many endpoints of one port are used: the slots of the
// data plane are numbered in 16 bits.
const MaxEndpoints = 1 << 16

// Service is one Service as this node sees it. It is immutable.
type Service struct {
	Name    Key
	Created time.Time
	// ClusterIPs has at most one address for each family.
	ClusterIPs [Families]netip.Addr
	// InternalLocal and ExternalLocal are true for the traffic policy Local.
	InternalLocal bool
	ExternalLocal bool
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
	// NodePort is 0 if there is none or another Service has the older claim.
	NodePort uint16
	Backends [Families]Backends
}

// Backends are the endpoints of a port in one family, each list sorted by
// address and port, without repeats.
type Backends struct {
	// Cluster are those for the policy Cluster: the ready ones, or if there is
	// none, those that still serve while they terminate.
	Cluster []Endpoint
	// Local are those on this node, chosen by the same rule among themselves.
	// Nil unless a policy of the Service is Local.
	Local []Endpoint
	// Draining are the endpoints that get no new flows from Cluster but still
	// serve the ones they have. Only for UDP, where a flow ends when its
	// endpoint is gone from here.
	Draining []Endpoint
}

// Endpoint is where traffic can be sent to.
type Endpoint struct {
	Addr netip.AddrPort
	// Local is true if it is on this node.
	Local bool
}

// Node is what matters of this node's Node object.
type Node struct {
	// Known is true once the object has been seen.
	Known bool
	Name  string
	// Addresses are the InternalIPs, or in their absence the ExternalIPs, in
	// the order of the object.
	Addresses [Families][]netip.Addr
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
	// Node is true if the node differs.
	Node bool
}

// Empty reports whether nothing changed.
func (c *Changes) Empty() bool { return len(c.Services) == 0 && !c.Node }

// Stats count what came in and what it amounted to.
type Stats struct {
	ServiceEvents uint64
	SliceEvents   uint64
	NodeEvents    uint64
	// ServiceChanges and NodeChanges are the events' real outcome.
	ServiceChanges uint64
	NodeChanges    uint64
	// Revision advances when Refresh found a change.
	Revision uint64
	// Skipped are parts of objects left out because they make no sense.
	Skipped uint64
	// Conflicts are claims that lose against another Service's, now.
	Conflicts int
}
