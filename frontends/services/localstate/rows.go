package localstate

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/source/network"
)

// Service is a row of TableServices, with the names of the Service API.
type Service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	publish.OutcomeRow
	ClusterIPs            []netip.Addr   `json:"clusterIPs"`
	InternalTrafficPolicy string         `json:"internalTrafficPolicy"`
	ExternalTrafficPolicy string         `json:"externalTrafficPolicy"`
	AffinitySeconds       int            `json:"sessionAffinityTimeoutSeconds,omitempty"`
	SourceRanges          []netip.Prefix `json:"loadBalancerSourceRanges,omitempty"`
	HealthCheckNodePort   uint16         `json:"healthCheckNodePort,omitempty"`
	ExternalIPsIgnored    bool           `json:"externalIPsIgnored,omitempty"`
	// of IPv4 and of IPv6
	LocalReady []int  `json:"localReadyEndpoints,omitempty"`
	Ports      []Port `json:"ports"`
}

// Port is a port of a Service, with won addresses.
type Port struct {
	Name string `json:"name,omitempty"`
	// "TCP", "UDP" or "SCTP"
	Protocol        string       `json:"protocol"`
	Port            uint16       `json:"port"`
	ClusterIPs      []netip.Addr `json:"clusterIPs,omitempty"`
	ExternalIPs     []netip.Addr `json:"externalIPs,omitempty"`
	LoadBalancerIPs []netip.Addr `json:"loadBalancerIPs,omitempty"`
	NodePort        uint16       `json:"nodePort,omitempty"`
	Endpoints       []Endpoint   `json:"endpoints"`
}

// Endpoint is an endpoint of a port.
type Endpoint struct {
	Address netip.AddrPort `json:"address"`
	// the lists of model.Backends: "cluster", "local" and "draining"
	Use   []string `json:"use"`
	Local bool     `json:"local"`
	// set by readers: why it does not receive some or all new flows
	Excluded string `json:"excluded,omitempty"`
}

// Address is a row of TableAddresses: the port of a Service.
type Address struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// name of the port
	Port string `json:"port,omitempty"`
}

// Model is the row of TableModel.
type Model struct {
	model.Stats
	// NodeAddresses are the node's IPv4 and IPv6 address, each invalid if unknown.
	NodeAddresses [model.NumFamilies]netip.Addr `json:"nodeAddresses"`
}

const (
	PolicyLocal   = "Local"
	PolicyCluster = "Cluster"
)

const (
	useCluster  = "cluster"
	useLocal    = "local"
	useDraining = "draining"
)

// NewService returns the row of a Service.
func NewService(s *model.Service, o publish.Outcome) Service {
	out := Service{
		Namespace: s.Name.Namespace, Name: s.Name.Name, OutcomeRow: o.Row(), ClusterIPs: valid(s.ClusterIPs),
		InternalTrafficPolicy: policy(s.InternalLocal), ExternalTrafficPolicy: policy(s.ExternalLocal),
		AffinitySeconds: int(s.Affinity.Seconds()), HealthCheckNodePort: s.HealthCheckNodePort, ExternalIPsIgnored: s.ExternalIPsIgnored,
		SourceRanges: slices.Concat(s.SourceRanges[:]...), Ports: make([]Port, len(s.Ports)),
	}
	if s.HealthCheckNodePort != 0 {
		out.LocalReady = s.LocalReady[:]
	}
	for i := range s.Ports {
		out.Ports[i] = newPort(&s.Ports[i])
	}
	return out
}

func newPort(p *model.Port) Port {
	out := Port{
		Name: p.Name, Protocol: strings.ToUpper(p.Protocol.String()), Port: p.Number, NodePort: p.NodePort,
		ClusterIPs: valid(p.ClusterIPs), Endpoints: []Endpoint{},
	}
	for f := range model.NumFamilies {
		for _, e := range p.External[f] {
			if e.LoadBalancer {
				out.LoadBalancerIPs = append(out.LoadBalancerIPs, e.Addr)
			} else {
				out.ExternalIPs = append(out.ExternalIPs, e.Addr)
			}
		}
		out.Endpoints = append(out.Endpoints, usesOf(&p.Backends[f])...)
	}
	return out
}

func usesOf(b *model.Backends) []Endpoint {
	var out []Endpoint
	for _, list := range []struct {
		use       string
		endpoints iter.Seq[model.Endpoint]
	}{{useCluster, b.Cluster.All()}, {useLocal, b.Local.All()}, {useDraining, b.Draining.All()}} {
		i := 0
		for e := range list.endpoints {
			// Both lists are sorted.
			for i < len(out) && out[i].Address.Compare(e.Addr) < 0 {
				i++
			}
			if i == len(out) || out[i].Address != e.Addr {
				out = slices.Insert(out, i, Endpoint{Address: e.Addr, Local: e.Local})
			}
			out[i].Use = append(out[i].Use, list.use)
		}
	}
	return out
}

func policy(local bool) string {
	if local {
		return PolicyLocal
	}
	return PolicyCluster
}

func valid(in [model.NumFamilies]netip.Addr) (out []netip.Addr) {
	for _, a := range in {
		if a.IsValid() {
			out = append(out, a)
		}
	}
	return out
}

// Model returns the Service of a row, without the time of creation. An error names the Service and the invalid
// value.
func (s *Service) Model() (*model.Service, error) {
	out := &model.Service{
		Name: model.Key{Namespace: s.Namespace, Name: s.Name}, HealthCheckNodePort: s.HealthCheckNodePort,
		InternalLocal: s.InternalTrafficPolicy == PolicyLocal, ExternalLocal: s.ExternalTrafficPolicy == PolicyLocal,
		Affinity: time.Duration(s.AffinitySeconds) * time.Second, ExternalIPsIgnored: s.ExternalIPsIgnored, Ports: make([]model.Port, len(s.Ports)),
	}
	var err error
	copy(out.LocalReady[:], s.LocalReady)
	for _, p := range s.SourceRanges {
		if !p.IsValid() {
			err = fmt.Errorf("%v is not a range of addresses", p)
			continue
		}
		f := model.FamilyOf(p.Addr())
		out.SourceRanges[f] = append(out.SourceRanges[f], p)
	}
	setAddresses(&out.ClusterIPs, s.ClusterIPs)
	for i := range s.Ports {
		if perr := s.Ports[i].model(&out.Ports[i]); perr != nil {
			err = perr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("row of Service %s: %w", out.Name, err)
	}
	return out, nil
}

func (p *Port) model(out *model.Port) (err error) {
	out.Name, out.Number, out.NodePort = p.Name, p.Port, p.NodePort
	if out.Protocol, err = network.ParseProtocol(corev1.Protocol(p.Protocol)); err != nil {
		return err
	}
	setAddresses(&out.ClusterIPs, p.ClusterIPs)
	for i, list := range [][]netip.Addr{p.ExternalIPs, p.LoadBalancerIPs} {
		for _, a := range list {
			f := model.FamilyOf(a)
			out.External[f] = append(out.External[f], model.External{Addr: a, LoadBalancer: i == 1})
		}
	}
	for f := range out.External {
		slices.SortFunc(out.External[f], func(a, b model.External) int { return a.Addr.Compare(b.Addr) })
	}
	var lists [model.NumFamilies]map[string][]model.Endpoint
	for f := range lists {
		lists[f] = make(map[string][]model.Endpoint)
	}
	for _, e := range p.Endpoints {
		if !e.Address.IsValid() {
			return fmt.Errorf("port %d: an endpoint has no address", p.Port)
		}
		f := model.FamilyOf(e.Address.Addr())
		for _, use := range e.Use {
			lists[f][use] = append(lists[f][use], model.Endpoint{Addr: e.Address, Local: e.Local})
		}
	}
	for f, l := range lists {
		out.Backends[f] = model.Backends{
			Cluster: model.MakeEndpoints(l[useCluster]...), Local: model.MakeEndpoints(l[useLocal]...), Draining: model.MakeEndpoints(l[useDraining]...),
		}
	}
	return nil
}

func setAddresses(to *[model.NumFamilies]netip.Addr, from []netip.Addr) {
	for _, a := range from {
		to[model.FamilyOf(a)] = a
	}
}
