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

// The families.
const (
	IPv4 Family = iota
	IPv6
	// NumFamilies is their number.
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

// The protocols of Services.
const (
	TCP  = network.TCP
	UDP  = network.UDP
	SCTP = network.SCTP
)

// MaxEndpoints is the number of endpoints of one port that are used. It bounds the load
// that one Service can cause on a node.
const MaxEndpoints = 1 << 18

// Service is one Service as this node sees it. It is immutable.
type Service struct {
	Name    Key
	Created time.Time
	// ClusterIPs has at most one address for each family.
	ClusterIPs [NumFamilies]netip.Addr
	// InternalLocal and ExternalLocal are true for the traffic policy Local. The
	// external one is false if the Service cannot be reached from outside.
	InternalLocal bool
	ExternalLocal bool
	// HealthCheckNodePort is the TCP port of the health check for load balancers, 0
	// for none.
	HealthCheckNodePort uint16
	// Affinity is how long a client keeps its endpoint after its last new flow
	// (session affinity ClientIP), in whole seconds; 0 means no affinity.
	Affinity time.Duration
	// SourceRanges are the sources that may reach the addresses of load balancers,
	// sorted. A nil list allows all.
	SourceRanges [NumFamilies][]netip.Prefix
	// LocalReady, if there is a HealthCheckNodePort, counts the distinct addresses of ready
	// endpoints on this node, over all ports, for each family. It is 0 otherwise.
	LocalReady [NumFamilies]int
	// Ports are sorted by name and protocol.
	Ports []Port
}

// Port is one port of a Service.
type Port struct {
	// Name is empty only if the Service has a single port.
	Name     string
	Protocol Protocol
	Number   uint16
	// ClusterIPs are those of the Service on which this port has won the claim to the
	// address, protocol and number; another Service may have an older claim.
	ClusterIPs [NumFamilies]netip.Addr
	// External are the addresses outside of the cluster's ranges on which this port
	// has won the claim, sorted, without duplicates.
	External [NumFamilies][]External
	// NodePort is 0 if there is none, or if another Service has an older claim.
	NodePort uint16
	Backends [NumFamilies]Backends
}

// External is one of a Service's externalIPs, or an address of its load
// balancer whose traffic this node takes (ipMode VIP).
type External struct {
	Addr netip.Addr
	// LoadBalancer is true for an address in status.loadBalancer, to which SourceRanges
	// apply.
	LoadBalancer bool
}

// Backends are the endpoints of a port in one family.
type Backends struct {
	// Cluster are those for the policy Cluster: the ready ones, or if there are
	// none, those that still serve while they terminate.
	Cluster Endpoints
	// Local are those on this node, chosen by the same rule. The list is empty unless
	// a policy of the Service is Local.
	Local Endpoints
	// Draining are the endpoints that receive no new flows from Cluster but still
	// serve the flows that they have. It is used only for UDP, because there a flow
	// ends when its endpoint is in none of the lists.
	Draining Endpoints
}

// Prefixes are prefixes of each family, sorted, without duplicates.
type Prefixes = [NumFamilies][]netip.Prefix

// Node is what matters of this node's Node object.
type Node struct {
	// Known is true once the object has been seen.
	Known bool
	Name  string
	// Addresses are the primary addresses of the node: the one in the configuration,
	// the first InternalIP, or the first ExternalIP of each family.
	Addresses [NumFamilies]netip.Addr
	// PodCIDRs are the addresses of the pods on this node. If the object has none, they are those that
	// it had before, and Kept is true.
	PodCIDRs Prefixes
	Kept     bool
	// Zone is the label topology.kubernetes.io/zone, empty if there is none.
	Zone string
	// Leaving is true while load balancers should not send new traffic to the node:
	// its object is deleted or being deleted, or has the DeletionTaint.
	Leaving bool
}

// Change is a Service whose outcome differs. Old is nil for a new Service, New for a
// deleted one.
type Change struct {
	Name Key
	Old  *Service
	New  *Service
}

// Changes are the result of Refresh.
type Changes struct {
	// Services are sorted by name.
	Services []Change
	// Node is nil if the node does not differ.
	Node *Node
	// ServiceCIDRs are the ranges of all ClusterIPs, nil if they do not differ.
	ServiceCIDRs *Prefixes
	// Triggers are the changes in the cluster that led to this one.
	Triggers []Trigger
}

// Trigger is a change of the endpoints of a Service in the cluster, in one family.
type Trigger struct {
	// At is the annotation endpoints.kubernetes.io/last-change-trigger-time.
	At     time.Time
	Family Family
}

// Empty reports whether nothing changed. Triggers do not count.
func (c *Changes) Empty() bool {
	return len(c.Services) == 0 && c.Node == nil && c.ServiceCIDRs == nil
}

// Notice is a message to the owner of a Service.
type Notice struct {
	Service Key
	// Reason is AddressConflict. Message is a sentence.
	Reason  string
	Message string
	// Reporter is true on at most three nodes of the cluster, which send the Notice to the
	// API server. It is false on all of them if neither Service has endpoints.
	Reporter bool
}

// Stats count the events and their outcome.
type Stats struct {
	ServiceEvents     uint64
	SliceEvents       uint64
	NodeEvents        uint64
	ServiceCIDREvents uint64
	// ServiceChanges and NodeChanges count differences in the outcome.
	ServiceChanges uint64
	NodeChanges    uint64
	// Revision counts the calls of Refresh that found a change in this process.
	Revision uint64
	// Skipped counts invalid parts of objects.
	Skipped uint64
	// Conflicts is the number of claims that currently lose against another Service.
	Conflicts int
	// Work counts the endpoints, slices, Services, claims and nodes of lists that were
	// looked at.
	Work uint64
	// Services and Slices are the numbers of objects in the model.
	Services int
	Slices   int
}
