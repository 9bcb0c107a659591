package render

import (
	"cmp"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// Update renders changes and ignores Change.Old. The update is a snapshot if a table came into use.
func (r *Renderer) Update(c model.Changes) publish.Update {
	var patches [model.NumFamilies]patch
	return r.update(c, &patches)
}

// Load applies changes without a patch, for a caller that sends a snapshot.
func (r *Renderer) Load(c model.Changes) {
	var patches [model.NumFamilies]patch
	for f := range patches {
		patches[f].discard = true
	}
	r.update(c, &patches)
}

func (r *Renderer) update(c model.Changes, patches *[model.NumFamilies]patch) (out publish.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Node != nil {
		r.changeNode(*c.Node, patches)
	}
	if c.ServiceCIDRs != nil {
		r.tables.changeServiceCIDRs(*c.ServiceCIDRs, patches)
	}
	for _, c := range c.Services {
		r.replace(c, patches)
	}
	p := &weftv1.Patch{Fragment: Fragment}
	for f, t := range r.tables {
		t.previous = nil
		if !t.on && r.cfg.Families[f] && len(t.serviceCIDRs)+len(t.clusterIPs.count) > 0 {
			t.on, out.Snapshot = true, true
		}
		t.renderUses(&r.cfg, &patches[f])
		if tp := patches[f].message(t); tp != nil && t.on && !t.frozen.on {
			p.Tables = append(p.Tables, tp)
		}
		for s := range numSets {
			out.Added += len(patches[f].add[s]) + patches[f].addPacked[s].len()
			out.Removed += len(patches[f].remove[s]) + patches[f].removePacked[s].len()
		}
		for _, e := range patches[f].elements {
			out.Added += weftv1.CountPacked(e.GetAddPacked())
			out.Removed += weftv1.CountPacked(e.GetRemovePacked())
		}
		r.work += uint64(len(patches[f].put))
	}
	r.work += uint64(out.Added + out.Removed)
	if !out.Snapshot && len(p.Tables) > 0 {
		out.Patch = p
	}
	return out
}

func (r *Renderer) changeNode(n model.Node, patches *[model.NumFamilies]patch) {
	var chains [model.NumFamilies][]*weftv1.Chain
	var keys [model.NumFamilies][]string
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

func (ts *tablesByFamily) changeServiceCIDRs(c model.Prefixes, patches *[model.NumFamilies]patch) {
	for f, t := range ts {
		keys := prefixTexts(c[f], t.family)
		patches[f].keys(serviceCIDRs, t.serviceCIDRs, keys)
		t.serviceCIDRs = keys
	}
}

// The order of Services does not matter: elements of a listener that moves between Services are replaced.
func (r *Renderer) replace(c model.Change, patches *[model.NumFamilies]patch) {
	delete(r.leftOut, c.Name)
	if why := check(c.New); why != nil {
		r.leftOut[c.Name], c.New = why, nil
	}
	old := cmp.Or(r.services[c.Name], r.none)
	now, revised := r.build(c.New, old)
	re := replacement{r, old, now, patches}
	re.removeOld()
	re.addNew(revised)
	re.count(old.service, -1)
	re.count(now.service, 1)
	re.countHairpins(old.service.Ports, now.service.Ports)
	re.keepAffinities()
	r.owners.change(old, now)
	if now == r.none {
		delete(r.services, c.Name)
	} else {
		r.services[c.Name] = now
	}
}

// replacement changes the tables from one form of a Service to the next.
type replacement struct {
	*Renderer
	old, now *rendered
	patches  *[model.NumFamilies]patch
}

// Slots of remaining listeners are left to addNew.
func (r *replacement) removeOld() {
	r.work += uint64(len(r.old.listeners))
	for i := range r.old.listeners {
		was := &r.old.listeners[i]
		p, t := &r.patches[was.key.family], r.tables[was.key.family]
		is := r.now.find(was.key, i)
		t.countUses(was, -1)
		r.elements -= was.elements()
		if p.discard {
			continue
		}
		if is == nil {
			for _, g := range was.groups() {
				p.removeSlots(was.key, &g, 0)
			}
		}
		for r, v := range was.verdicts {
			if v.to != absent && (is == nil || is.verdicts[r].to == absent) {
				p.unset(was.in(role(r)), was.key.String())
			}
		}
	}
}

func (r *replacement) addNew(revised revisions) {
	for i := range r.now.listeners {
		is := &r.now.listeners[i]
		p, t := &r.patches[is.key.family], r.tables[is.key.family]
		t.countUses(is, 1)
		r.elements += is.elements()
		if p.discard {
			continue
		}
		was := r.old.find(is.key, i)
		had := was.groups()
		for n, g := range is.groups() {
			r.work += p.setSlots(is.key, &g, &had[n], revised)
		}
		p.listener(r.now.service.Name, is, was)
	}
}

func (p *patch) listener(of model.Key, is, was *listener) {
	for r, v := range is.verdicts {
		if v.to == absent || was != nil && was.port == is.port && is.sameValue(was, role(r)) {
			continue
		}
		var key, value [256]byte
		var comment [2 * maxComment]byte
		p.set(is.in(role(r)), is.key.append(key[:0]), is.appendValue(value[:0], role(r)), appendComment(comment[:0], of, is.port))
	}
}

func (p *patch) removeSlots(k listenerKey, g *group, kept int) {
	var scratch [64]byte
	prefix := k.pack(scratch[:0])
	for slot := kept; slot < g.n; slot++ {
		p.unpack(g.in, packSlot(prefix, g.base+slot))
	}
}

func (p *patch) setSlots(k listenerKey, g, had *group, revised revisions) (looked uint64) {
	var scratch, value [64]byte
	prefix := k.pack(scratch[:0])
	set := func(slot int) {
		p.pack(g.in, packSlot(prefix, g.base+slot), packEndpoint(value[:0], g.pool.slots.at(slot)))
	}
	kept := min(g.n, had.n)
	if g.pool == had.pool {
		for _, slot := range revised[g.pool] {
			if slot < kept {
				set(slot)
			}
		}
		looked += uint64(len(revised[g.pool]))
	} else {
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
	p.removeSlots(k, had, g.n)
	return looked
}

func (t *table) countUses(f *listener, by int) {
	if f.sources != "" {
		t.sources.add(f.sources, by)
	}
	if l, ok := f.limited(); ok {
		t.limited.add(l, by)
	}
	if f.key.nodePort() && t.loopback.Rejects(f.key.protocol) {
		t.rejected.add(f.key, by)
		t.hooks.add(roleNoEndpoint, by)
	}
	for r, v := range f.verdicts {
		switch v.to {
		case pick:
			t.picks.add(v, by)
		case recall:
			t.picks.add(f.sticky.picks(v), by)
		}
		if v.to != absent && hooks[r] != nil {
			t.hooks.add(role(r), by)
		}
	}
}

// Other Services may share an address.
func (r *replacement) count(s *model.Service, by int) {
	for f, ip := range s.ClusterIPs {
		if ip.IsValid() && r.cfg.Families[f] {
			r.tables[f].clusterIPs.add(ip, by)
		}
	}
}

// The cost of countHairpins is proportional to the difference.
func (r *replacement) countHairpins(old, now []model.Port) {
	none := &model.Port{}
	for i := range max(len(old), len(now)) {
		was, is := none, none
		if i < len(old) {
			was = &old[i]
		}
		if i < len(now) {
			is = &now[i]
		}
		if was.Protocol == is.Protocol {
			r.countPortHairpins(is.Protocol, &was.Backends, &is.Backends)
		} else {
			r.countPortHairpins(was.Protocol, &was.Backends, &none.Backends)
			r.countPortHairpins(is.Protocol, &none.Backends, &is.Backends)
		}
	}
}

func (r *replacement) countPortHairpins(protocol model.Protocol, was, is *[model.NumFamilies]model.Backends) {
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
			l.of(&is[f]).Diff(l.of(&was[f]), add(-1), add(1))
		}
	}
}

func (t *table) renderUses(cfg *Config, p *patch) {
	renderKeys(p, clusterIPs, &t.clusterIPs, packAddr)
	renderKeys(p, hairpin, &t.hairpins, hairpinKey.pack)
	renderKeys(p, loopbackNodePorts, &t.rejected, listenerKey.pack)
	t.hooks.update(p.hooks)
	t.picks.update(func(v verdict) { p.chain(t.pick(cfg, v)) })
	renderChains(t, p, &t.sources, func(s sources) *weftv1.Chain { return s.chain(t, cfg) })
	renderChains(t, p, &t.limited, limited.chain)
}

func renderChains[K comparable](t *table, p *patch, u *uses[K], of func(K) *weftv1.Chain) {
	began, ended := u.changed()
	for _, k := range began {
		c := of(k)
		delete(t.idleChains, c.GetName())
		p.chain(c)
	}
	for _, k := range ended {
		t.empty(p, of(k).GetName())
	}
}

func (t *table) empty(p *patch, name string) {
	t.idleChains[name] = struct{}{}
	p.chain(chain(name))
}

func renderKeys[K comparable](p *patch, in set, u *uses[K], pack func(K, []byte) []byte) {
	began, ended := u.changed()
	addKeys(p, in, began, pack)
	for _, k := range ended {
		p.unpack(in, pack(k, nil))
	}
}

func addKeys[K any](p *patch, in set, keys []K, pack func(K, []byte) []byte) {
	var key []byte
	for _, k := range keys {
		key = pack(k, key[:0])
		p.pack(in, key, nil)
	}
}
