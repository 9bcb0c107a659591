package model

import (
	"fmt"
	"net/netip"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/frontends/services/model/modelpb"
)

// Snapshot is the whole state at one revision. Its Services are sorted by name and immutable.
type Snapshot struct {
	// Revision is Stats.Revision, not a commit's revision.
	Revision     uint64
	Node         Node
	ServiceCIDRs Prefixes
	Services     []*Service
}

// Proto returns the snapshot as a message.
func (s Snapshot) Proto() *modelpb.Model {
	out := &modelpb.Model{
		Revision: s.Revision,
		Node: &modelpb.Node{
			Known: s.Node.Known, Name: s.Node.Name, Addresses: addrsProto(s.Node.Addresses),
			PodCidrs: prefixesProto(&s.Node.PodCIDRs), Kept: s.Node.Kept, Zone: s.Node.Zone, Leaving: s.Node.Leaving,
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
		HealthCheckNodePort: uint32(s.HealthCheckNodePort),
		Ports:               make([]*modelpb.Port, len(s.Ports)),
	}
	if s.LocalReady != ([NumFamilies]int{}) {
		out.LocalReady = []uint32{uint32(s.LocalReady[IPv4]), uint32(s.LocalReady[IPv6])} //nolint:gosec // counts
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

func addrsProto(in [NumFamilies]netip.Addr) (out [][]byte) {
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

func externalProto(in *[NumFamilies][]External) (out []*modelpb.External) {
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

// FromProto returns the snapshot of a message. It rejects addresses and numbers out of range.
func FromProto(p *modelpb.Model) (Snapshot, error) {
	var d decoder
	n := p.GetNode()
	out := Snapshot{
		Revision: p.GetRevision(),
		Node: Node{
			Known: n.GetKnown(), Name: n.GetName(), Zone: n.GetZone(), Leaving: n.GetLeaving(),
			Addresses: d.addrs(n.GetAddresses()), PodCIDRs: d.prefixes(n.GetPodCidrs()), Kept: n.GetKept(),
		},
		ServiceCIDRs: d.prefixes(p.GetServiceCidrs()),
		Services:     make([]*Service, len(p.GetServices())),
	}
	if d.err != nil {
		return Snapshot{}, fmt.Errorf("decode model: %w", d.err)
	}
	for i, s := range p.GetServices() {
		if out.Services[i] = d.service(s); d.err != nil {
			return Snapshot{}, fmt.Errorf("decode model: service %s/%s: %w", s.GetNamespace(), s.GetName(), d.err)
		}
	}
	return out, nil
}

// decoder decodes parts of a message. err is the first error; results are valid only while it is nil.
type decoder struct{ err error }

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

func (d *decoder) service(p *modelpb.Service) *Service {
	out := &Service{
		Name:          Key{Namespace: p.GetNamespace(), Name: p.GetName()},
		InternalLocal: p.GetInternalLocal(), ExternalLocal: p.GetExternalLocal(),
		Affinity: time.Duration(p.GetAffinitySeconds()) * time.Second, Ports: make([]Port, len(p.GetPorts())),
		ClusterIPs: d.addrs(p.GetClusterIps()), SourceRanges: d.prefixes(p.GetSourceRanges()),
		HealthCheckNodePort: d.optionalPort(p.GetHealthCheckNodePort()),
	}
	for f := range min(len(p.GetLocalReady()), int(NumFamilies)) {
		out.LocalReady[f] = int(p.GetLocalReady()[f])
	}
	if p.GetCreated() != nil {
		out.Created = p.GetCreated().AsTime()
	}
	for i, q := range p.GetPorts() {
		out.Ports[i] = d.servicePort(q)
	}
	return out
}

func (d *decoder) servicePort(p *modelpb.Port) Port {
	out := Port{
		Name: p.GetName(), Protocol: d.protocol(p.GetProtocol()), Number: d.port(p.GetNumber()),
		NodePort: d.optionalPort(p.GetNodePort()), ClusterIPs: d.addrs(p.GetClusterIps()),
	}
	for _, e := range p.GetExternal() {
		a := d.addr(e.GetAddress())
		out.External[FamilyOf(a)] = append(out.External[FamilyOf(a)], External{Addr: a, LoadBalancer: e.GetLoadBalancer()})
	}
	for i, b := range [NumFamilies]*modelpb.Backends{p.GetIpv4(), p.GetIpv6()} {
		f := Family(i)
		out.Backends[f] = Backends{Cluster: d.endpoints(b.GetCluster(), f), Local: d.endpoints(b.GetLocal(), f), Draining: d.endpoints(b.GetDraining(), f)}
	}
	return out
}

func (d *decoder) endpoints(in []*modelpb.Endpoint, f Family) Endpoints {
	out := make([]Endpoint, len(in))
	for i, e := range in {
		a := d.addr(e.GetAddress())
		if FamilyOf(a) != f {
			d.fail("%s is not an %s address", a, f)
			return Endpoints{}
		}
		out[i] = Endpoint{Addr: netip.AddrPortFrom(a, d.port(e.GetPort())), Local: e.GetLocal()}
	}
	return MakeEndpoints(out...)
}

func (d *decoder) protocol(n uint32) Protocol {
	if n != uint32(TCP) && n != uint32(UDP) && n != uint32(SCTP) {
		d.fail("unknown protocol %d", n)
	}
	return Protocol(n) //nolint:gosec // checked
}

func (d *decoder) port(n uint32) uint16 {
	if n < 1 || n > 65535 {
		d.fail("port %d is not in 1 to 65535", n)
	}
	return uint16(n)
}

func (d *decoder) optionalPort(n uint32) uint16 {
	if n == 0 {
		return 0
	}
	return d.port(n)
}

func (d *decoder) addrs(in [][]byte) (out [NumFamilies]netip.Addr) {
	for _, b := range in {
		a := d.addr(b)
		out[FamilyOf(a)] = a
	}
	return out
}

func (d *decoder) prefixes(in []*modelpb.Prefix) (out Prefixes) {
	for _, q := range in {
		a := d.addr(q.GetAddress())
		p := netip.PrefixFrom(a, int(min(q.GetLength(), 1<<8)))
		if !p.IsValid() || p != p.Masked() {
			d.fail("%s/%d is not a range of addresses", a, q.GetLength())
		}
		out[FamilyOf(a)] = append(out[FamilyOf(a)], p)
	}
	return out
}

func (d *decoder) addr(b []byte) netip.Addr {
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		d.fail("an address has %d bytes: want 4 or 16", len(b))
	}
	return a.Unmap()
}
