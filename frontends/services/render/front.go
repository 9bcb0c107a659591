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

// role is what a front can have an element for, besides its slots.
type role uint8

const (
	// answers says what happens to new flows to the front.
	answers role = iota
	// cuts says it for those that take a shortcut.
	cuts
	// unserved says it where nothing else did.
	unserved
	// limited is whether there are source ranges.
	limited
	numRoles
)

// roleSets are the sets and maps of the roles, by NodePort (1) or address (0).
// NodePorts have no source ranges.
var roleSets = [2][numRoles]set{
	{answers: services, cuts: shortcuts, unserved: noEndpoints, limited: firewalled},
	{answers: nodePorts, cuts: nodePortShortcuts, unserved: noEndpointNodePorts},
}

// slotSets have the slots by NodePort or address, and affinity (1) or none (0).
var slotSets = [2][2]set{
	{endpoints, stickyEndpoints},
	{nodePortEndpoints, nodePortStickyEndpoints},
}

// front is one place where a Service answers, as it is rendered.
type front struct {
	key frontKey
	// port is the name of the Service's port.
	port string
	// slots are those of the list that the front is for, and what drains.
	slots slots
	list  list
	// local are those for the traffic policy Local of a front that has both.
	local    []netip.AddrPort
	verdicts [numRoles]verdict
	// sources are who may reach the front, if it is limited.
	sources []netip.Prefix
	// sticky is nil without session affinity.
	sticky *affinity
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// in returns the set of a role.
func (f *front) in(r role) set { return roleSets[index(f.key.nodePort())][r] }

// decide works out the verdicts, for traffic from inside or outside of the
// cluster; elsewhere is whether there are endpoints on other nodes.
func (f *front) decide(inside, local, elsewhere bool) {
	kinds := &picks[index(f.key.nodePort())][index(f.sticky != nil)]
	none := verdict{to: rejected}
	if elsewhere {
		none.to = dropped
	}
	n, l := f.slots.active, len(f.local)
	switch {
	case inside && n > 0:
		f.verdicts[answers] = verdict{kinds[direct], n}
	case inside:
		f.verdicts[unserved] = none
	case !local && n > 0:
		f.verdicts[answers] = verdict{kinds[masqueraded], n}
	case !local:
		f.verdicts[unserved] = verdict{to: rejected}
	default:
		if n > 0 {
			f.verdicts[cuts] = verdict{kinds[direct], n}
		}
		switch {
		case l > 0:
			f.verdicts[answers] = verdict{kinds[kept], l}
		case n > 0 && f.key.nodePort():
			f.verdicts[answers], f.verdicts[unserved] = verdict{to: nodePortShortcut}, verdict{to: dropped}
		case n > 0:
			f.verdicts[answers], f.verdicts[unserved] = verdict{to: shortcut}, verdict{to: dropped}
		default:
			f.verdicts[unserved] = verdict{to: rejected}
		}
	}
	if f.sources != nil {
		f.verdicts[limited] = verdict{to: present}
	}
}

// group is a run of slots in one map.
type group struct {
	in   set
	base int
	// remember begins the names of the chains that the slots go to; empty where
	// the slots have the endpoints themselves.
	remember  string
	endpoints []netip.AddrPort
}

// numGroups is how many groups a front can have.
const numGroups = 4

// groups returns the slots as they are in maps. The place of a group in the result
// says which one it is; one without endpoints is not there. UDP fronts have all
// endpoints in a map of conntrack's, with affinity too.
func (f *front) groups() (out [numGroups]group) {
	if f == nil {
		return out
	}
	in := &slotSets[index(f.key.nodePort())]
	if f.sticky == nil || f.key.protocol == model.UDP {
		out[0] = group{in: in[0], endpoints: f.slots.all}
		out[1] = group{in: in[0], base: localSlots, endpoints: f.local}
	}
	if f.sticky != nil {
		out[2] = group{in: in[1], endpoints: f.slots.all[:f.slots.active], remember: f.sticky.chainPrefix(f.list)}
		out[3] = group{in: in[1], base: localSlots, endpoints: f.local, remember: f.sticky.chainPrefix(byLocal)}
	}
	return out
}

// elements returns how many slots are filled.
func (f *front) elements() (n int) {
	for _, g := range f.groups() {
		n += len(g.endpoints)
	}
	return n
}

// appendValue writes the value of a slot.
func (g *group) appendValue(b []byte, ep netip.AddrPort) []byte {
	if g.remember == "" {
		return appendEndpoint(b, ep)
	}
	return append(append(b, "goto "...), rememberName(g.remember, ep)...)
}

// rendered is a Service together with its fronts.
type rendered struct {
	service *model.Service
	fronts  []front
	// affinities are those of its ports.
	affinities []*affinity
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
	b := builder{Renderer: r, service: s, old: old, out: &rendered{service: s}}
	for i := range s.Ports {
		for f := range model.Families {
			if r.cfg.Families[f] && s.ClusterIPs[f].IsValid() {
				b.add(&s.Ports[i], f)
			}
		}
	}
	return b.out
}

// builder builds the fronts of a Service.
type builder struct {
	*Renderer
	service *model.Service
	old     *rendered
	out     *rendered
}

// add builds the fronts of a port in one family.
func (b *builder) add(p *model.Port, f model.Family) {
	s := b.service
	var a *affinity
	if s.Affinity > 0 {
		a = &affinity{family: f, protocol: p.Protocol, timeout: s.Affinity, name: affinityName(s.Name, p)}
	}
	n := len(b.out.fronts)
	if ip := p.ClusterIPs[f]; ip.IsValid() {
		b.front(frontKey{family: f, addr: ip, protocol: p.Protocol, port: p.Number}, p, a, true, nil)
	}
	for _, e := range p.External[f] {
		var sources []netip.Prefix
		if ranges := s.SourceRanges[f]; e.LoadBalancer && ranges != nil {
			// An empty list lets nobody through, no list everybody.
			sources = append([]netip.Prefix{}, prefixes(ranges, f)...)
		}
		b.front(frontKey{family: f, addr: e.Addr, protocol: p.Protocol, port: p.Number}, p, a, false, sources)
	}
	if p.NodePort != 0 {
		b.front(frontKey{family: f, protocol: p.Protocol, port: p.NodePort}, p, a, false, nil)
	}
	if a != nil && len(b.out.fronts) > n {
		b.out.affinities = append(b.out.affinities, a)
	}
}

// front builds one front, for traffic from inside of the cluster or from outside.
func (b *builder) front(k frontKey, p *model.Port, a *affinity, inside bool, sources []netip.Prefix) {
	all := &p.Backends[k.family]
	f := front{key: k, port: p.Name, sources: sources, sticky: a}
	use, local := all.Cluster, model.Endpoints{}
	if inside && b.service.InternalLocal {
		use, f.list = all.Local, byLocal
	}
	outsideLocal := !inside && b.service.ExternalLocal
	if outsideLocal {
		local = all.Local
	}
	if a != nil {
		a.lists[f.list] = affinityList{true, use}
		if outsideLocal {
			a.lists[byLocal] = affinityList{true, local}
		}
	}
	was := b.old.find(k)
	had := b.tables[k.family].hints[k]
	if was != nil {
		had = hint{was.slots.all, was.local}
	}
	drain := draining(p.Protocol, use, local, all)
	if was != nil && was.slots.same(use, drain) {
		f.slots = was.slots
	} else {
		f.slots = assign(had.slots, use, drain)
	}
	f.local = assign(had.local, local, model.Endpoints{}).all
	f.decide(inside, outsideLocal, all.Cluster.Len() > 0)
	b.out.fronts = append(b.out.fronts, f)
}

// draining returns the endpoints that keep the flows that they have but get no
// new ones from a front that uses these: whatever else serves.
func draining(p model.Protocol, use, local model.Endpoints, all *model.Backends) model.Endpoints {
	if p != model.UDP {
		return model.Endpoints{}
	}
	if all.Local.Len() == 0 && use.Len() == all.Cluster.Len() {
		return all.Draining
	}
	var out []model.Endpoint
	for _, l := range []model.Endpoints{all.Cluster, all.Local, all.Draining} {
		for e := range l.All() {
			if !use.Has(e.Addr) && !local.Has(e.Addr) {
				out = append(out, e)
			}
		}
	}
	return model.MakeEndpoints(out...)
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
			for _, l := range []model.Endpoints{p.Backends[fam].Cluster, p.Backends[fam].Local} {
				for e := range l.All() {
					if e.Local {
						f(fam, hairpinKey{e.Addr, p.Protocol})
					}
				}
			}
		}
	}
}
