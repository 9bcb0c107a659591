package render

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// The tests' node.
const (
	podCIDR4 = "10.244.0.0/16"
	podCIDR6 = "fd00:10:244::/56"
)

func testConfig() Config {
	return Config{
		Families:      [2]bool{true, true},
		Detect:        Detect{CIDRs: []netip.Prefix{netip.MustParsePrefix(podCIDR4), netip.MustParsePrefix(podCIDR6)}},
		MasqueradeBit: DefaultMasqueradeBit,
	}
}

// service returns a Service from "ns/name", addresses separated by spaces, and ports.
func service(name, ips string, ports ...model.Port) *model.Service {
	ns, n, _ := strings.Cut(name, "/")
	s := &model.Service{Name: model.Key{Namespace: ns, Name: n}, Ports: ports}
	for _, text := range strings.Fields(ips) {
		a := netip.MustParseAddr(text)
		s.ClusterIPs[model.FamilyOf(a)] = a
	}
	for i := range s.Ports {
		s.Ports[i].ClusterIPs = s.ClusterIPs
	}
	return s
}

// port returns a port from "name proto number nodeport" and endpoints, local
// ones with a star.
func port(spec string, eps ...string) model.Port {
	var p model.Port
	var proto string
	if _, err := fmt.Sscan(spec, &p.Name, &proto, &p.Number, &p.NodePort); err != nil {
		panic(err)
	}
	p.Protocol = map[string]model.Protocol{"tcp": model.TCP, "udp": model.UDP, "sctp": model.SCTP}[proto]
	var of [model.NumFamilies][]model.Endpoint
	for _, e := range parseEndpoints(eps) {
		f := model.FamilyOf(e.Addr.Addr())
		of[f] = append(of[f], e)
	}
	for f, list := range of {
		p.Backends[f].Cluster = model.MakeEndpoints(list...)
	}
	return p
}

func endpointsOf(eps ...string) model.Endpoints { return model.MakeEndpoints(parseEndpoints(eps)...) }

func parseEndpoints(eps []string) (out []model.Endpoint) {
	for _, text := range eps {
		addr, local := strings.CutSuffix(text, "*")
		out = append(out, model.Endpoint{Addr: netip.MustParseAddrPort(addr), Local: local})
	}
	return out
}

// without returns the endpoints that drop is false for.
func without(in model.Endpoints, drop func(model.Endpoint) bool) model.Endpoints {
	return model.MakeEndpoints(slices.DeleteFunc(slices.Collect(in.All()), drop)...)
}

// put is the change to a Service, whatever it was before.
func put(s *model.Service) []model.Change { return []model.Change{{Name: s.Name, New: s}} }

func gone(name string) []model.Change {
	ns, n, _ := strings.Cut(name, "/")
	return []model.Change{{Name: model.Key{Namespace: ns, Name: n}}}
}

func nodeOf(addrs ...string) *model.Node {
	n := &model.Node{Known: true, Name: "n1"}
	for _, text := range addrs {
		a := netip.MustParseAddr(text)
		n.Addresses[model.FamilyOf(a)] = a
	}
	return n
}

// reach makes a Service answer from outside, at these addresses on all ports; those of
// load balancers end in a star.
func reach(s *model.Service, addrs ...string) *model.Service {
	for _, text := range addrs {
		text, lb := strings.CutSuffix(text, "*")
		a := netip.MustParseAddr(text)
		for i := range s.Ports {
			of := &s.Ports[i].External[model.FamilyOf(a)]
			*of = append(*of, model.External{Addr: a, LoadBalancer: lb})
		}
	}
	return s
}

// local gives every port of a Service its list for the policy Local, and sets the
// policies.
func local(s *model.Service, internal, external bool) *model.Service {
	s.InternalLocal, s.ExternalLocal = internal, external
	for i := range s.Ports {
		for f := range model.NumFamilies {
			b := &s.Ports[i].Backends[f]
			b.Local = without(b.Cluster, func(e model.Endpoint) bool { return !e.Local })
		}
	}
	return s
}

// withAffinity gives a Service affinity.
func withAffinity(s *model.Service, timeout time.Duration) *model.Service {
	s.Affinity = timeout
	return s
}

// limit lets only these sources to the addresses of load balancers.
func limit(s *model.Service, sources ...string) *model.Service {
	for _, text := range sources {
		p := netip.MustParsePrefix(text)
		of := &s.SourceRanges[model.FamilyOf(p.Addr())]
		*of = append(*of, p)
	}
	return s
}

// cidrs are prefixes by family.
func cidrs(texts ...string) *model.Prefixes {
	var out model.Prefixes
	for _, text := range texts {
		p := netip.MustParsePrefix(text)
		out[model.FamilyOf(p.Addr())] = append(out[model.FamilyOf(p.Addr())], p)
	}
	return &out
}
