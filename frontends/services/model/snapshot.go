package model

import (
	"fmt"
	"net/netip"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// Snapshot is the whole state at one revision. Its Services are sorted by name
// and immutable.
type Snapshot struct {
	Revision     uint64
	Node         Node
	ServiceCIDRs Prefixes
	Services     []*Service
}

// MarshalBinary encodes the snapshot as a modelpb.Model, deterministically.
func (s Snapshot) MarshalBinary() ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(s.Proto())
}

// UnmarshalBinary decodes the result of MarshalBinary. It validates the input: an address
// or number out of range is an error.
func (s *Snapshot) UnmarshalBinary(b []byte) error {
	var p modelpb.Model
	if err := proto.Unmarshal(b, &p); err != nil {
		return fmt.Errorf("decode model: %w", err)
	}
	out, err := FromProto(&p)
	if err != nil {
		return err
	}
	*s = out
	return nil
}

// Proto returns the snapshot as a message.
func (s Snapshot) Proto() *modelpb.Model {
	out := &modelpb.Model{
		Revision: s.Revision,
		Node: &modelpb.Node{
			Known: s.Node.Known, Name: s.Node.Name, Addresses: addrsProto(s.Node.Addresses),
			PodCidrs: prefixesProto(&s.Node.PodCIDRs), Zone: s.Node.Zone, Leaving: s.Node.Leaving,
		},
		ServiceCidrs: prefixesProto(&s.ServiceCIDRs),
		Services:     make([]*modelpb.Service, len(s.Services)),
	}
	for i, svc := range s.Services {
		out.Services[i] = serviceProto(svc)
	}
	return out
}

func serviceProto(s *Service) *modelpb.Service {
	out := &modelpb.Service{
		Namespace: s.Name.Namespace, Name: s.Name.Name, ClusterIps: addrsProto(s.ClusterIPs),
		InternalLocal: s.InternalLocal, ExternalLocal: s.ExternalLocal,
		AffinitySeconds: uint32(s.Affinity / time.Second), SourceRanges: prefixesProto(&s.SourceRanges),
		HealthCheckNodePort: uint32(s.HealthCheckNodePort), LocalReady: countsProto(s.LocalReady),
		Ports: make([]*modelpb.Port, len(s.Ports)),
	}
	if !s.Created.IsZero() {
		out.Created = timestamppb.New(s.Created)
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		out.Ports[i] = &modelpb.Port{
			Name: p.Name, Protocol: uint32(p.Protocol), Number: uint32(p.Number),
			ClusterIps: addrsProto(p.ClusterIPs), NodePort: uint32(p.NodePort),
			Ipv4: backendsProto(&p.Backends[IPv4]), Ipv6: backendsProto(&p.Backends[IPv6]),
			External: externalProto(&p.External),
		}
	}
	return out
}

// countsProto returns nil if all counts are 0.
func countsProto(in [Families]int) []uint32 {
	if in == ([Families]int{}) {
		return nil
	}
	out := make([]uint32, Families)
	for f, n := range in {
		out[f] = uint32(n) //nolint:gosec // a count
	}
	return out
}

func countsOf(in []uint32) (out [Families]int) {
	for f := range min(len(in), len(out)) {
		out[f] = int(in[f])
	}
	return out
}

func addrsProto(in [Families]netip.Addr) (out [][]byte) {
	for _, a := range in {
		if a.IsValid() {
			out = append(out, a.AsSlice())
		}
	}
	return out
}

func prefixesProto(in *Prefixes) (out []*modelpb.Prefix) {
	for _, all := range in {
		for _, p := range all {
			out = append(out, &modelpb.Prefix{Address: p.Addr().AsSlice(), Length: uint32(p.Bits())})
		}
	}
	return out
}

func externalProto(in *[Families][]External) (out []*modelpb.External) {
	for _, all := range in {
		for _, e := range all {
			out = append(out, &modelpb.External{Address: e.Addr.AsSlice(), LoadBalancer: e.LoadBalancer})
		}
	}
	return out
}

func backendsProto(b *Backends) *modelpb.Backends {
	if b.Empty() {
		return nil
	}
	return &modelpb.Backends{Cluster: endpointsProto(b.Cluster), Local: endpointsProto(b.Local), Draining: endpointsProto(b.Draining)}
}

func endpointsProto(in Endpoints) []*modelpb.Endpoint {
	out := make([]*modelpb.Endpoint, 0, in.Len())
	for e := range in.All() {
		out = append(out, &modelpb.Endpoint{Address: e.Addr.Addr().AsSlice(), Port: uint32(e.Addr.Port()), Local: e.Local})
	}
	return out
}

// FromProto returns the snapshot of a message.
func FromProto(p *modelpb.Model) (Snapshot, error) {
	out := Snapshot{
		Revision: p.GetRevision(),
		Services: make([]*Service, len(p.GetServices())),
	}
	var err error
	if out.Node, err = nodeOf(p.GetNode()); err != nil {
		return Snapshot{}, fmt.Errorf("decode model: node: %w", err)
	}
	if out.ServiceCIDRs, err = prefixesOf(p.GetServiceCidrs()); err != nil {
		return Snapshot{}, fmt.Errorf("decode model: service CIDRs: %w", err)
	}
	for i, s := range p.GetServices() {
		svc, err := serviceOf(s)
		if err != nil {
			return Snapshot{}, fmt.Errorf("decode model: service %s/%s: %w", s.GetNamespace(), s.GetName(), err)
		}
		out.Services[i] = svc
	}
	return out, nil
}

func nodeOf(p *modelpb.Node) (out Node, err error) {
	out = Node{Known: p.GetKnown(), Name: p.GetName(), Zone: p.GetZone(), Leaving: p.GetLeaving()}
	if out.Addresses, err = addrsOf(p.GetAddresses()); err != nil {
		return out, err
	}
	out.PodCIDRs, err = prefixesOf(p.GetPodCidrs())
	return out, err
}

func serviceOf(p *modelpb.Service) (*Service, error) {
	out := &Service{
		Name:          Key{Namespace: p.GetNamespace(), Name: p.GetName()},
		InternalLocal: p.GetInternalLocal(), ExternalLocal: p.GetExternalLocal(),
		Affinity: time.Duration(p.GetAffinitySeconds()) * time.Second, LocalReady: countsOf(p.GetLocalReady()),
		Ports: make([]Port, len(p.GetPorts())),
	}
	if p.GetCreated() != nil {
		out.Created = p.GetCreated().AsTime()
	}
	var err error
	if out.ClusterIPs, err = addrsOf(p.GetClusterIps()); err != nil {
		return nil, err
	}
	if out.SourceRanges, err = prefixesOf(p.GetSourceRanges()); err != nil {
		return nil, err
	}
	if out.HealthCheckNodePort, err = optionalPort(p.GetHealthCheckNodePort()); err != nil {
		return nil, err
	}
	for i, q := range p.GetPorts() {
		if out.Ports[i], err = portOf(q); err != nil {
			return nil, fmt.Errorf("port %d: %w", i, err)
		}
	}
	return out, nil
}

func portOf(p *modelpb.Port) (out Port, err error) {
	out = Port{Name: p.GetName(), Protocol: Protocol(p.GetProtocol())}
	if out.Protocol != TCP && out.Protocol != UDP && out.Protocol != SCTP || p.GetProtocol() > 255 {
		return out, fmt.Errorf("unknown protocol %d", p.GetProtocol())
	}
	if out.Number, err = parsePort(int32(min(p.GetNumber(), 1<<16))); err != nil {
		return out, err
	}
	if out.NodePort, err = optionalPort(p.GetNodePort()); err != nil {
		return out, err
	}
	if out.ClusterIPs, err = addrsOf(p.GetClusterIps()); err != nil {
		return out, err
	}
	for _, e := range p.GetExternal() {
		a, err := addrOf(e.GetAddress())
		if err != nil {
			return out, err
		}
		f := FamilyOf(a)
		out.External[f] = append(out.External[f], External{Addr: a, LoadBalancer: e.GetLoadBalancer()})
	}
	for f, b := range [Families]*modelpb.Backends{p.GetIpv4(), p.GetIpv6()} {
		for _, l := range []struct {
			to   *Endpoints
			from []*modelpb.Endpoint
		}{
			{&out.Backends[f].Cluster, b.GetCluster()},
			{&out.Backends[f].Local, b.GetLocal()},
			{&out.Backends[f].Draining, b.GetDraining()},
		} {
			if *l.to, err = endpointsOf(l.from, Family(f)); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// optionalPort returns a port number that may be 0.
func optionalPort(n uint32) (uint16, error) {
	if n == 0 {
		return 0, nil
	}
	return parsePort(int32(min(n, 1<<16)))
}

func endpointsOf(in []*modelpb.Endpoint, f Family) (Endpoints, error) {
	out := make([]Endpoint, len(in))
	for i, e := range in {
		a, err := addrOf(e.GetAddress())
		if err != nil {
			return Endpoints{}, err
		}
		if FamilyOf(a) != f {
			return Endpoints{}, fmt.Errorf("%s is not an %s address", a, f)
		}
		n, err := parsePort(int32(min(e.GetPort(), 1<<16)))
		if err != nil {
			return Endpoints{}, err
		}
		out[i] = Endpoint{Addr: netip.AddrPortFrom(a, n), Local: e.GetLocal()}
	}
	return MakeEndpoints(out...), nil
}

func addrsOf(in [][]byte) (out [Families]netip.Addr, err error) {
	for _, b := range in {
		a, err := addrOf(b)
		if err != nil {
			return out, err
		}
		out[FamilyOf(a)] = a
	}
	return out, nil
}

func prefixesOf(in []*modelpb.Prefix) (out Prefixes, err error) {
	for _, q := range in {
		a, err := addrOf(q.GetAddress())
		if err != nil {
			return out, err
		}
		p := netip.PrefixFrom(a, int(min(q.GetLength(), 1<<8)))
		if !p.IsValid() || p != p.Masked() {
			return out, fmt.Errorf("%s/%d is not a range of addresses", a, q.GetLength())
		}
		out[FamilyOf(a)] = append(out[FamilyOf(a)], p)
	}
	return out, nil
}

func addrOf(b []byte) (netip.Addr, error) {
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return netip.Addr{}, fmt.Errorf("an address has %d bytes: want 4 or 16", len(b))
	}
	return a.Unmap(), nil
}
