package render

import (
	"net/netip"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// Update is what a change of the model amounts to.
type Update struct {
	// Patch is nil if nothing changed, or if Whole is true.
	Patch *weftv1.Patch
	// Whole is true if only a snapshot can carry the change: a table came
	// into use.
	Whole bool
	// Added and Removed count elements.
	Added   int
	Removed int
}

// Empty reports whether there is nothing to publish.
func (u *Update) Empty() bool { return u.Patch == nil && !u.Whole }

// Update renders what changed. Changes of Services are by New alone: it replaces
// whatever the Service was rendered as.
func (r *Renderer) Update(c model.Changes) Update {
	var patches [model.Families]patch
	return r.update(c, &patches)
}

// Load does what Update does for one who sends a snapshot anyway, and so needs
// no patch.
func (r *Renderer) Load(c model.Changes) {
	var patches [model.Families]patch
	for f := range patches {
		patches[f].mute = true
	}
	r.update(c, &patches)
}

func (r *Renderer) update(c model.Changes, patches *[model.Families]patch) Update {
	if c.Node != nil {
		r.changeNode(*c.Node, patches)
	}
	var out Update
	if c.ServiceCIDRs != nil {
		out.Whole = r.changeServiceCIDRs(*c.ServiceCIDRs, patches)
	}
	for _, c := range c.Services {
		out.Whole = r.enable(c.New) || out.Whole
		r.replace(c, patches)
	}
	for _, t := range r.tables {
		t.hints = nil
	}
	p := &weftv1.Patch{Fragment: Fragment}
	for f, t := range r.tables {
		t.settle(&r.cfg, &patches[f])
		if tp := patches[f].message(t); tp != nil && t.on && !t.aside.on {
			p.Tables = append(p.Tables, tp)
		}
		for s := range numSets {
			out.Added += len(patches[f].add[s])
			out.Removed += len(patches[f].remove[s])
		}
		r.work += uint64(len(patches[f].put))
	}
	r.work += uint64(out.Added + out.Removed)
	if !out.Whole && len(p.Tables) > 0 {
		out.Patch = p
	}
	return out
}

// enable turns tables on that a Service needs, and reports whether it did.
func (r *Renderer) enable(s *model.Service) (whole bool) {
	if s == nil {
		return false
	}
	for f, t := range r.tables {
		if !t.on && r.cfg.Families[f] && s.ClusterIPs[f].IsValid() {
			t.on, whole = true, true
		}
	}
	return whole
}

// changeNode renders other addresses for NodePorts and other pods.
func (r *Renderer) changeNode(n model.Node, patches *[model.Families]patch) {
	var chains [model.Families][]*weftv1.Chain
	var keys [model.Families][]string
	for f, t := range r.tables {
		chains[f], keys[f] = t.nodeChains(&r.cfg), t.nodePortKeys
	}
	r.setNode(n)
	for f, t := range r.tables {
		p := &patches[f]
		for i, c := range t.nodeChains(&r.cfg) {
			if !proto.Equal(c, chains[f][i]) {
				p.chain(c)
			}
		}
		p.keys(nodePortIPs, keys[f], t.nodePortKeys)
	}
}

// changeServiceCIDRs renders other ranges of ClusterIPs, and reports whether a table
// came into use by that.
func (r *Renderer) changeServiceCIDRs(c model.Prefixes, patches *[model.Families]patch) (whole bool) {
	for f, t := range r.tables {
		var keys []string
		for _, p := range prefixes(c[f], model.Family(f)) {
			keys = append(keys, prefixText(p))
		}
		patches[f].keys(serviceCIDRs, t.serviceCIDRs, keys)
		t.serviceCIDRs = keys
		if len(keys) > 0 && !t.on && r.cfg.Families[f] {
			t.on, whole = true, true
		}
	}
	return whole
}

// replace renders one Service anew. The order of Services in an update does not matter:
// what one of them loses and another one wins, a front or its slots, is replaced.
func (r *Renderer) replace(c model.Change, patches *[model.Families]patch) {
	old := r.services[c.Name]
	now, revised := r.build(c.New, old)
	r.retire(old, now, patches)
	r.introduce(old, now, revised, patches)
	var was *model.Service
	if old != nil {
		was = old.service
	}
	r.count(was, -1)
	r.count(c.New, 1)
	r.pin(was, c.New)
	r.remember(old, now, patches)
	r.owners.change(old, now)
	if now == nil {
		delete(r.services, c.Name)
	} else {
		r.services[c.Name] = now
	}
}

// retire takes away the fronts that a Service had and has no longer, and of the
// others what they have no longer but slots.
func (r *Renderer) retire(old, now *rendered, patches *[model.Families]patch) {
	if old == nil {
		return
	}
	r.work += uint64(len(old.fronts))
	for i := range old.fronts {
		was := &old.fronts[i]
		p, t := &patches[was.key.family], r.tables[was.key.family]
		is := now.find(was.key, i)
		t.use(was, -1)
		r.elements -= was.elements()
		if p.mute {
			continue
		}
		if is == nil {
			for _, g := range was.groups() {
				p.trim(was.key, &g, 0)
			}
		}
		for r, v := range was.verdicts {
			if v.to != absent && (is == nil || is.verdicts[r].to == absent) {
				p.unset(was.in(role(r)), was.key.String())
			}
		}
		for _, source := range was.sources {
			if is == nil || !allows(is.sources, source) {
				p.unset(allowedSources, sourceKey(was.key, source))
			}
		}
	}
}

// introduce adds what a Service has now and had not, or had differently.
func (r *Renderer) introduce(old, now *rendered, revised []revision, patches *[model.Families]patch) {
	if now == nil {
		return
	}
	for i := range now.fronts {
		is := &now.fronts[i]
		p, t := &patches[is.key.family], r.tables[is.key.family]
		t.use(is, 1)
		r.elements += is.elements()
		if p.mute {
			continue
		}
		was := old.find(is.key, i)
		had := was.groups()
		for n, g := range is.groups() {
			r.work += p.fill(is.key, &g, &had[n], revised)
		}
		p.front(now.service.Name, is, was)
	}
}

// front adds a front's elements that differ from those that it had, but for slots.
func (p *patch) front(of model.Key, is, was *front) {
	for r, v := range is.verdicts {
		if v.to == absent || was != nil && was.port == is.port && was.verdicts[r] == v {
			continue
		}
		var key, value [64]byte
		var comment [2 * maxComment]byte
		p.set(is.in(role(r)), is.key.append(key[:0]), v.append(value[:0]), appendComment(comment[:0], of, is.port))
	}
	for _, source := range is.sources {
		if was == nil || !allows(was.sources, source) {
			p.key(allowedSources, sourceKey(is.key, source))
		}
	}
}

// allows reports whether sorted source ranges have this one.
func allows(sources []netip.Prefix, s netip.Prefix) bool {
	_, ok := slices.BinarySearchFunc(sources, s, netip.Prefix.Compare)
	return ok
}

// sourceKey is an element of the allowed sources.
func sourceKey(k frontKey, source netip.Prefix) string {
	return string(append(append(k.append(nil), separator...), prefixText(source)...))
}

// trim removes the slots of a group from the kept-th on.
func (p *patch) trim(k frontKey, g *group, kept int) {
	var scratch [64]byte
	prefix := append(k.append(scratch[:0]), separator...)
	for slot := kept; slot < g.n; slot++ {
		p.unset(g.in, string(strconv.AppendInt(prefix, int64(g.base+slot), 10)))
	}
}

// fill makes the slots of a group those that it has in place of those that it had, and
// returns how many it looked at.
func (p *patch) fill(k frontKey, g, had *group, revised []revision) (looked uint64) {
	var scratch, value [128]byte
	prefix := append(k.append(scratch[:0]), separator...)
	set := func(slot int) {
		p.set(g.in, strconv.AppendInt(prefix, int64(g.base+slot), 10), g.appendValue(value[:0], slot), nil)
	}
	kept := min(g.n, had.n)
	switch {
	case g.remember != had.remember:
		kept = 0
	case g.pool == had.pool:
		for _, r := range revised {
			if r.pool != g.pool {
				continue
			}
			for _, slot := range r.changed {
				if slot < kept {
					set(slot)
				}
			}
			looked += uint64(len(r.changed))
		}
	default:
		for slot := range kept {
			if g.pool.slots.at(slot) != had.pool.slots.at(slot) {
				set(slot)
			}
		}
		looked += uint64(kept)
	}
	for slot := kept; slot < g.n; slot++ {
		set(slot)
	}
	p.trim(k, had, g.n)
	return looked
}

// use counts a front's chains.
func (t *table) use(f *front, by int) {
	for r, v := range f.verdicts {
		if v.picks() {
			t.picks.add(v, by)
		}
		t.useHooks(role(r), v, by)
	}
}

// count counts the addresses of a Service, which others can have, too.
func (r *Renderer) count(s *model.Service, by int) {
	if s == nil {
		return
	}
	for f, ip := range s.ClusterIPs {
		if ip.IsValid() && r.cfg.Families[f] {
			r.tables[f].clusterIPs.add(ip, by)
		}
	}
}

// pin counts the endpoints on this node, to which a flow of theirs can come back: by
// ports, at the cost of what differs where a Service has the ports that it had.
func (r *Renderer) pin(old, now *model.Service) {
	none := &model.Port{}
	for i := range max(ports(old), ports(now)) {
		was, is := none, none
		if i < ports(old) {
			was = &old.Ports[i]
		}
		if i < ports(now) {
			is = &now.Ports[i]
		}
		if was.Protocol == is.Protocol {
			r.pinPort(is.Protocol, &was.Backends, &is.Backends)
		} else {
			r.pinPort(was.Protocol, &was.Backends, &none.Backends)
			r.pinPort(is.Protocol, &none.Backends, &is.Backends)
		}
	}
}

func ports(s *model.Service) int {
	if s == nil {
		return 0
	}
	return len(s.Ports)
}

func (r *Renderer) pinPort(protocol model.Protocol, was, is *[model.Families]model.Backends) {
	for f, t := range r.tables {
		if !r.cfg.Families[f] {
			continue
		}
		add := func(by int) func(model.Endpoint) {
			return func(e model.Endpoint) {
				r.work++
				if e.Local {
					t.hairpins.add(hairpinKey{e.Addr, protocol}, by)
				}
			}
		}
		for l := range numLists {
			l.of(&is[f]).Since(l.of(&was[f]), add(-1), add(1))
		}
	}
}

// settle turns changed counts into elements and chains. Chains that went out of
// use stay until Sweep: on kernels before 6.2 an element keeps its chain busy
// for a moment after it is gone.
func (t *table) settle(cfg *Config, p *patch) {
	began, ended := t.clusterIPs.take(netip.Addr.Compare)
	for _, a := range began {
		p.address(a)
	}
	for _, a := range ended {
		p.unset(clusterIPs, a.String())
	}
	pins, unpinned := t.hairpins.take(hairpinKey.compare)
	for _, h := range pins {
		p.key(hairpin, h.String())
	}
	for _, h := range unpinned {
		p.unset(hairpin, h.String())
	}
	t.settleHooks(p)
	picked, left := t.picks.take(verdict.compare)
	for _, v := range picked {
		if _, declared := t.idlePicks[v]; declared {
			delete(t.idlePicks, v)
			continue
		}
		p.chain(t.pick(cfg, v))
	}
	for _, v := range left {
		t.idlePicks[v] = struct{}{}
	}
}
