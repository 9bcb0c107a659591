package render

import (
	"net/netip"
	"strconv"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// frontKey is where a Service answers: a port of an address, or with the zero
// address a NodePort.
type frontKey struct {
	family   model.Family
	addr     netip.Addr
	protocol model.Protocol
	port     uint16
}

func (k frontKey) nodePort() bool { return !k.addr.IsValid() }

// append writes the key's part of an element key, without slot.
func (k frontKey) append(b []byte) []byte {
	if !k.nodePort() {
		b = k.addr.AppendTo(b)
		b = append(b, " . "...)
	}
	b = append(b, k.protocol.String()...)
	b = append(b, " . "...)
	return strconv.AppendUint(b, uint64(k.port), 10)
}

func (k frontKey) String() string { return string(k.append(nil)) }

// slotSet is the map that has the front's endpoints.
func (k frontKey) slotSet() set {
	if k.nodePort() {
		return nodePortEndpoints
	}
	return endpoints
}

// front is one place where a Service answers, as it is rendered.
type front struct {
	key frontKey
	// port is the name of the Service's port.
	port  string
	slots slots
	// drop is true for a front without endpoints here that has some elsewhere.
	drop bool
}

// entry returns the element that decides about the front's packets.
func (f *front) entry() (in set, value string) {
	switch {
	case f.slots.active > 0 && f.key.nodePort():
		return nodePorts, "goto " + nodePortPickName(f.slots.active)
	case f.slots.active > 0:
		return services, "goto " + pickName(f.slots.active)
	}
	in, value = noEndpoints, "goto "+chainReject
	if f.key.nodePort() {
		in = noEndpointNodePorts
	}
	if f.drop {
		value = "drop"
	}
	return in, value
}

// rendered is a Service together with its fronts.
type rendered struct {
	service *model.Service
	fronts  []front
}

// find returns the front of a key, nil if there is none. A Service has few.
func (r *rendered) find(k frontKey) *front {
	if r == nil {
		return nil
	}
	for i := range r.fronts {
		if r.fronts[i].key == k {
			return &r.fronts[i]
		}
	}
	return nil
}

// build renders a Service, nil for none, starting from the slots that its
// fronts had.
func (r *Renderer) build(s *model.Service, old *rendered) *rendered {
	if s == nil {
		return nil
	}
	out := &rendered{service: s}
	for i := range s.Ports {
		p := &s.Ports[i]
		for f := range model.Families {
			if !r.cfg.Families[f] || !s.ClusterIPs[f].IsValid() {
				continue
			}
			b := &p.Backends[f]
			if ip := p.ClusterIPs[f]; ip.IsValid() {
				use := b.Cluster
				if s.InternalLocal {
					use = b.Local
				}
				out.fronts = append(out.fronts, r.front(old, frontKey{family: f, addr: ip, protocol: p.Protocol, port: p.Number}, p, use, b))
			}
			if p.NodePort != 0 {
				out.fronts = append(out.fronts, r.front(old, frontKey{family: f, protocol: p.Protocol, port: p.NodePort}, p, b.Cluster, b))
			}
		}
	}
	return out
}

func (r *Renderer) front(old *rendered, k frontKey, p *model.Port, use []model.Endpoint, b *model.Backends) front {
	out := front{key: k, port: p.Name, drop: len(use) == 0 && len(b.Cluster) > 0}
	drain := draining(p, use, b)
	if was := old.find(k); was != nil {
		if was.slots.same(use, drain) {
			out.slots = was.slots
		} else {
			out.slots = assign(was.slots.all, use, drain)
		}
		return out
	}
	out.slots = assign(r.tables[k.family].hints[k], use, drain)
	return out
}

// draining returns the endpoints that keep the flows that they have but get no
// new ones from this front.
func draining(p *model.Port, use []model.Endpoint, b *model.Backends) []model.Endpoint {
	if p.Protocol != model.UDP {
		return nil
	}
	if len(use) == len(b.Cluster) {
		return b.Draining
	}
	// A front with its own choice of endpoints: whatever else serves. All
	// three lists are sorted.
	var out []model.Endpoint
	for _, l := range [][]model.Endpoint{b.Cluster, b.Draining} {
		for _, e := range l {
			if !contains(use, e) {
				out = append(out, e)
			}
		}
	}
	return out
}

// hairpins calls f for each local endpoint that a flow can come back to.
func (r *Renderer) hairpins(s *model.Service, f func(model.Family, hairpinKey)) {
	if s == nil {
		return
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		for fam := range model.Families {
			if !r.cfg.Families[fam] {
				continue
			}
			for _, l := range [][]model.Endpoint{p.Backends[fam].Cluster, p.Backends[fam].Local} {
				for _, e := range l {
					if e.Local {
						f(fam, hairpinKey{e.Addr, p.Protocol})
					}
				}
			}
		}
	}
}
