package doctor

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/weft-proxy/weft/frontends/services/model"
)

const (
	// maxAlike bounds ports of a kind, maxPods source pods of a family.
	maxAlike = 3
	maxPods  = 2
)

// kind has properties on which rules of other programs may depend.
type kind struct {
	family   model.Family
	protocol model.Protocol
	// local, remote: endpoints on this node, on others; open: clients outside of the cluster can
	// connect.
	local, remote, open bool
}

type sampledPort struct {
	kind
	service *model.Service
	port    *model.Port
}

func (p *sampledPort) endpoints() int { return p.port.Backends[p.family].Cluster.Len() }

// sampleTrips returns trips to the ClusterIP from the node and pods, and to an external address or
// NodePort from outside.
func sampleTrips(state *model.Snapshot) []trip {
	pods := localPods(state.Services)
	var out []trip
	for _, p := range samplePorts(state.Services) {
		t := trip{service: p.service.Name.String(), protocol: p.port.Protocol}
		if to := p.port.ClusterIPs[p.family]; to.IsValid() {
			t.to = netip.AddrPortFrom(to, p.port.Number)
			for _, from := range append([]string{fromNode}, pods[p.family]...) {
				t.from = from
				out = append(out, t)
			}
		}
		t.from = fromOutside
		if external := p.port.External[p.family]; len(external) > 0 {
			t.to = netip.AddrPortFrom(external[0].Addr, p.port.Number)
			out = append(out, t)
		}
		if to := state.Node.Addresses[p.family]; to.IsValid() && p.port.NodePort != 0 {
			t.to = netip.AddrPortFrom(to, p.port.NodePort)
			out = append(out, t)
		}
	}
	return out
}

// samplePorts prefers few endpoints, because each is a way of the packet.
func samplePorts(services []*model.Service) []sampledPort {
	of := make(map[kind][]sampledPort)
	var kinds []kind
	for _, s := range services {
		for i := range s.Ports {
			for family := range model.NumFamilies {
				p := sampledPort{kindOf(&s.Ports[i], family), s, &s.Ports[i]}
				if p.endpoints() == 0 {
					continue
				}
				if of[p.kind] == nil {
					kinds = append(kinds, p.kind)
				}
				alike := append(of[p.kind], p)
				slices.SortStableFunc(alike, func(a, b sampledPort) int { return cmp.Compare(a.endpoints(), b.endpoints()) })
				of[p.kind] = alike[:min(len(alike), maxAlike)]
			}
		}
	}
	var out []sampledPort
	// Time may run out after one port of each kind.
	for i := range maxAlike {
		for _, k := range kinds {
			if i < len(of[k]) {
				out = append(out, of[k][i])
			}
		}
	}
	return out
}

func kindOf(p *model.Port, family model.Family) kind {
	k := kind{family: family, protocol: p.Protocol, open: p.NodePort != 0 || len(p.External[family]) > 0}
	for e := range p.Backends[family].Cluster.All() {
		k.local, k.remote = k.local || e.Local, k.remote || !e.Local
		if k.local && k.remote {
			break
		}
	}
	return k
}

func localPods(services []*model.Service) (pods [model.NumFamilies][]string) {
	for _, s := range services {
		for i := range s.Ports {
			for family := range model.NumFamilies {
				for e := range s.Ports[i].Backends[family].Cluster.All() {
					if len(pods[family]) == maxPods {
						break
					}
					if addr := e.Addr.Addr().String(); e.Local && !slices.Contains(pods[family], addr) {
						pods[family] = append(pods[family], addr)
					}
				}
			}
		}
	}
	return pods
}
