package render

import (
	"maps"
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

// patch collects one table's changes.
type patch struct {
	add    [numSets][]*weftv1.Element
	remove [numSets][]string
	put    []*weftv1.Chain
	// maps are new ones that packets fill.
	maps []*weftv1.Set
	slab slab
	// mute drops elements: only the renderer's own state is to change.
	mute bool
}

// set adds or replaces an element.
func (p *patch) set(in set, key, value, comment string) {
	if !p.mute {
		p.add[in] = append(p.add[in], p.slab.element(key, value, comment))
	}
}

// unset removes an element.
func (p *patch) unset(in set, key string) {
	if !p.mute {
		p.remove[in] = append(p.remove[in], key)
	}
}

// chain declares or replaces a chain.
func (p *patch) chain(c *weftv1.Chain) {
	if !p.mute {
		p.put = append(p.put, c)
	}
}

// keys makes a set's keys those of a list in place of those of another.
func (p *patch) keys(in set, from, to []string) {
	for _, k := range from {
		if !slices.Contains(to, k) {
			p.unset(in, k)
		}
	}
	for _, k := range to {
		if !slices.Contains(from, k) {
			p.set(in, k, "", "")
		}
	}
}

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
	changes := c.Services
	if c.Node != nil {
		r.changeNode(*c.Node, patches)
	}
	var out Update
	if c.ServiceCIDRs != nil {
		out.Whole = r.changeServiceCIDRs(*c.ServiceCIDRs, patches)
	}
	// All removals come before all additions, as one Service can take over a
	// front of another.
	type pair struct{ old, now *rendered }
	pairs := make([]pair, len(changes))
	for i, c := range changes {
		old := r.services[c.Name]
		now := r.build(c.New, old)
		pairs[i] = pair{old, now}
		r.retire(old, now, patches)
	}
	for i, c := range changes {
		now := pairs[i].now
		out.Whole = r.enable(c.New) || out.Whole
		r.introduce(pairs[i].old, now, patches)
		if now == nil {
			delete(r.services, c.Name)
		} else {
			r.services[c.Name] = now
		}
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
	}
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

// retire takes away what a Service had and has no longer.
func (r *Renderer) retire(old, now *rendered, patches *[model.Families]patch) {
	if old == nil {
		return
	}
	for i := range old.fronts {
		was := &old.fronts[i]
		p, t := &patches[was.key.family], r.tables[was.key.family]
		t.use(was, -1)
		if p.mute {
			continue
		}
		is := now.find(was.key)
		kept := is.groups()
		for n, g := range was.groups() {
			p.clear(was.key, &g, len(kept[n].endpoints))
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
	r.forget(old, now, patches)
	r.count(old.service, -1)
}

// introduce adds what a Service has now and had not, or had differently.
func (r *Renderer) introduce(old, now *rendered, patches *[model.Families]patch) {
	if now == nil {
		return
	}
	for i := range now.fronts {
		is := &now.fronts[i]
		p := &patches[is.key.family]
		r.tables[is.key.family].use(is, 1)
		if !p.mute {
			p.front(now.service.Name, is, old.find(is.key))
		}
	}
	r.remember(old, now, patches)
	r.count(now.service, 1)
}

// front adds a front's elements that differ from those that it had.
func (p *patch) front(of model.Key, is, was *front) {
	had := was.groups()
	for n, g := range is.groups() {
		p.fill(is.key, &g, &had[n])
	}
	for r, v := range is.verdicts {
		if v.to == absent || was != nil && was.port == is.port && was.verdicts[r] == v {
			continue
		}
		p.set(is.in(role(r)), is.key.String(), v.String(), comment(of, is.port))
	}
	for _, source := range is.sources {
		if was == nil || !allows(was.sources, source) {
			p.set(allowedSources, sourceKey(is.key, source), "", "")
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
	return string(append(append(k.append(nil), " . "...), prefixText(source)...))
}

// clear removes the slots of a group from the kept-th on.
func (p *patch) clear(k frontKey, g *group, kept int) {
	if kept >= len(g.endpoints) {
		return
	}
	prefix := append(k.append(nil), " . "...)
	for slot := kept; slot < len(g.endpoints); slot++ {
		p.unset(g.in, string(strconv.AppendInt(prefix, int64(g.base+slot), 10)))
	}
}

// fill adds the slots of a group that differ from what it had.
func (p *patch) fill(k frontKey, g, had *group) {
	var prefix []byte
	var scratch [64]byte
	for slot, ep := range g.endpoints {
		if slot < len(had.endpoints) && had.endpoints[slot] == ep && had.remember == g.remember {
			continue
		}
		if prefix == nil {
			prefix = append(k.append(make([]byte, 0, 64)), " . "...)
		}
		key := string(strconv.AppendInt(prefix, int64(g.base+slot), 10))
		p.set(g.in, key, string(g.appendValue(scratch[:0], ep)), "")
	}
}

func appendEndpoint(b []byte, ep netip.AddrPort) []byte {
	b = ep.Addr().AppendTo(b)
	b = append(b, " . "...)
	return strconv.AppendUint(b, uint64(ep.Port()), 10)
}

// use counts a front's chains.
func (t *table) use(f *front, by int) {
	for _, v := range f.verdicts {
		if v.picks() {
			t.picks.add(v, by)
		}
	}
}

// count counts what Services share: addresses and hairpin endpoints.
func (r *Renderer) count(s *model.Service, by int) {
	for f, ip := range s.ClusterIPs {
		if ip.IsValid() && r.cfg.Families[f] {
			r.tables[f].clusterIPs.add(ip, by)
		}
	}
	r.hairpins(s, func(f model.Family, h hairpinKey) { r.tables[f].hairpins.add(h, by) })
}

// settle turns changed counts into elements and chains. Chains that went out of
// use stay until Sweep: on kernels before 6.2 an element keeps its chain busy
// for a moment after it is gone.
func (t *table) settle(cfg *Config, p *patch) {
	began, ended := t.clusterIPs.take(netip.Addr.Compare)
	for _, a := range began {
		p.set(clusterIPs, a.String(), "", "")
	}
	for _, a := range ended {
		p.unset(clusterIPs, a.String())
	}
	pins, unpinned := t.hairpins.take(hairpinKey.compare)
	for _, h := range pins {
		p.set(hairpin, h.String(), "", "")
	}
	for _, h := range unpinned {
		p.unset(hairpin, h.String())
	}
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

// Sweep removes the chains and maps that have no use. It returns nil if there is
// none.
func (r *Renderer) Sweep() *weftv1.Patch {
	out := &weftv1.Patch{Fragment: Fragment}
	for _, t := range r.tables {
		var chains []string
		for _, v := range slices.SortedFunc(maps.Keys(t.idlePicks), verdict.compare) {
			chains = append(chains, v.chain())
		}
		chains = append(chains, slices.Sorted(maps.Keys(t.idleChains))...)
		sets := slices.Sorted(maps.Keys(t.idleMaps))
		clear(t.idlePicks)
		clear(t.idleChains)
		clear(t.idleMaps)
		if len(chains)+len(sets) > 0 && t.on && !t.aside.on {
			out.Tables = append(out.Tables, &weftv1.TablePatch{Family: t.words.table, Name: Table, DeleteChains: chains, DeleteSets: sets})
		}
	}
	if len(out.Tables) == 0 {
		return nil
	}
	return out
}

// message returns the patch of a table, nil if it is empty.
func (p *patch) message(t *table) *weftv1.TablePatch {
	out := &weftv1.TablePatch{Family: t.words.table, Name: Table, PutChains: p.put, PutMaps: p.maps}
	for _, m := range p.maps {
		out.AffinityMaps = append(out.AffinityMaps, m.GetName())
	}
	for s := range numSets {
		remove := p.remove[s]
		if len(remove) > 0 && len(p.add[s]) > 0 {
			// What one Service lost and another one won is a replacement.
			again := make(map[string]struct{}, len(p.add[s]))
			for _, e := range p.add[s] {
				again[e.GetKey()] = struct{}{}
			}
			remove = slices.DeleteFunc(remove, func(k string) bool { _, ok := again[k]; return ok })
			p.remove[s] = remove
		}
		if len(remove) == 0 && len(p.add[s]) == 0 {
			continue
		}
		out.Elements = append(out.Elements, &weftv1.ElementPatch{Set: declarations[s].name, Add: p.add[s], Remove: remove})
	}
	if len(out.Elements) == 0 && len(out.PutChains)+len(out.PutMaps) == 0 {
		return nil
	}
	return out
}

// slabSize is how many elements a patch allocates at once.
const slabSize = 8

// slab hands out elements, many of which come from one allocation.
type slab struct{ free []weftv1.Element }

func (s *slab) element(key, value, comment string) *weftv1.Element {
	if len(s.free) == 0 {
		s.free = make([]weftv1.Element, slabSize)
	}
	e := &s.free[0]
	s.free = s.free[1:]
	e.Key, e.Value, e.Comment = key, value, comment
	return e
}
