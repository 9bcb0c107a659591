package model

import (
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/source/network"
)

// Key names a Service.
type Key = types.NamespacedName

// Family is an IP family, usable as an index.
type Family uint8

const (
	IPv4 Family = iota
	IPv6
	// NumFamilies is the number of families.
	NumFamilies
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
type Protocol = network.Protocol

const (
	TCP  = network.TCP
	UDP  = network.UDP
	SCTP = network.SCTP
)

// MaxEndpoints bounds the used endpoints of a port.
const MaxEndpoints = 1 << 18

// Service is a Service as this node sees it. It is immutable.
type Service struct {
	Name    Key
	Created time.Time
	// at most one address per family
	ClusterIPs [NumFamilies]netip.Addr
	// true for the traffic policy Local; ExternalLocal requires reachability from outside
	InternalLocal bool
	ExternalLocal bool
	// ExternalIPsIgnored reports external IPs that are not served.
	ExternalIPsIgnored bool
	// 0 if absent
	HealthCheckNodePort uint16
	// Affinity is how long a client keeps its endpoint after its last new flow, in whole seconds; 0 if
	// absent.
	Affinity time.Duration
	// sorted; nil allows all
	SourceRanges [NumFamilies][]netip.Prefix
	// LocalReady counts the distinct addresses of ready local endpoints over all ports. It is 0 without
	// HealthCheckNodePort.
	LocalReady [NumFamilies]int
	// sorted by name and protocol
	Ports []Port
}

// Port is one port of a Service.
type Port struct {
	// empty only for a single port
	Name     string
	Protocol Protocol
	Number   uint16
	// won claims only
	ClusterIPs [NumFamilies]netip.Addr
	// won claims only, sorted, unique
	External [NumFamilies][]External
	// 0 if absent or held by an older Service
	NodePort uint16
	Backends [NumFamilies]Backends
}

// External is one of a Service's externalIPs, or a load balancer address with ipMode VIP.
type External struct {
	Addr netip.Addr
	// of status.loadBalancer, subject to SourceRanges
	LoadBalancer bool
}

// Backends are a port's endpoints in one family.
type Backends struct {
	// the ready endpoints, or else the serving, terminating ones
	Cluster Endpoints
	// this node's endpoints by the same rule; empty unless a policy is Local
	Local Endpoints
	// for UDP only, the serving endpoints outside Cluster: a flow ends when its endpoint leaves all lists
	Draining Endpoints
}

// Prefixes are sorted, unique prefixes per family.
type Prefixes = [NumFamilies][]netip.Prefix

// Node is the relevant state of this node's Node object.
type Node struct {
	Known bool
	Name  string
	// configured, first InternalIP, or first ExternalIP
	Addresses [NumFamilies]netip.Addr
	// If the object loses its PodCIDRs, the old ranges stay and Kept is true.
	PodCIDRs Prefixes
	Kept     bool
	// label topology.kubernetes.io/zone
	Zone string
	// The object is deleted, being deleted, or has DeletionTaint.
	Leaving bool
}

// Change is a changed outcome. Old is nil for a new Service, New for a deleted one.
type Change struct {
	Name Key
	Old  *Service
	New  *Service
}

// Changes are the result of Refresh.
type Changes struct {
	Services []Change
	// nil if unchanged
	Node *Node
	// nil if unchanged
	ServiceCIDRs *Prefixes
	Triggers     []Trigger
}

// Trigger is a change of a Service's endpoints in one family.
type Trigger struct {
	// annotation endpoints.kubernetes.io/last-change-trigger-time
	At     time.Time
	Family Family
}

// Empty reports the absence of changes. Triggers do not count.
func (c *Changes) Empty() bool {
	return len(c.Services) == 0 && c.Node == nil && c.ServiceCIDRs == nil
}

// Notice is a message to a Service's owner.
type Notice struct {
	Service Key
	Reason  string
	Message string
	// Reporter selects at most three nodes to send the Notice.
	Reporter bool
}

// Stats count events and outcomes.
type Stats struct {
	ServiceEvents     uint64 `json:"serviceEvents"`
	SliceEvents       uint64 `json:"sliceEvents"`
	NodeEvents        uint64 `json:"nodeEvents"`
	ServiceCIDREvents uint64 `json:"serviceCIDREvents"`
	// differences in the outcome
	ServiceChanges uint64 `json:"serviceChanges"`
	NodeChanges    uint64 `json:"nodeChanges"`
	// Refresh calls with changes in this process
	Revision uint64 `json:"revision"`
	// invalid parts of objects
	Skipped uint64 `json:"skipped"`
	// current number of lost claims
	Conflicts int `json:"conflicts"`
	// visited endpoints, slices, Services and claims
	Work     uint64 `json:"-"`
	Services int    `json:"services"`
	Slices   int    `json:"slices"`
}
