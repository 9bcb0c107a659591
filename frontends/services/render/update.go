package render

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"

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
	slab   slab
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
	var out Update
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
		if tp := patches[f].message(t); tp != nil && t.on {
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

// changeNode renders other addresses for NodePorts.
func (r *Renderer) changeNode(n model.Node, patches *[model.Families]patch) {
	type was struct {
		mode nodePortMode
		keys []string
	}
	var before [model.Families]was
	for f, t := range r.tables {
		before[f] = was{t.nodePort, t.nodePortKeys}
	}
	r.setNode(n)
	for f, t := range r.tables {
		p := &patches[f]
		if t.nodePort != before[f].mode {
			p.put = append(p.put, t.nodePortChains(&r.cfg)...)
		}
		for _, k := range before[f].keys {
			if !slices.Contains(t.nodePortKeys, k) {
				p.unset(nodePortIPs, k)
			}
		}
		for _, k := range t.nodePortKeys {
			if !slices.Contains(before[f].keys, k) {
				p.set(nodePortIPs, k, "", "")
			}
		}
	}
}

// retire takes away what a Service had and has no longer.
func (r *Renderer) retire(old, now *rendered, patches *[model.Families]patch) {
	if old == nil {
		return
	}
	for i := range old.fronts {
		was := &old.fronts[i]
		p, t := &patches[was.key.family], r.tables[was.key.family]
		is := now.find(was.key)
		kept := 0
		if is != nil {
			kept = len(is.slots.all)
		}
		if kept < len(was.slots.all) && !p.mute {
			prefix := append(was.key.append(nil), " . "...)
			in := was.key.slotSet()
			for slot := kept; slot < len(was.slots.all); slot++ {
				p.unset(in, string(strconv.AppendInt(prefix, int64(slot), 10)))
			}
		}
		in, _ := was.entry()
		t.use(was, -1)
		if is != nil {
			if still, _ := is.entry(); still == in {
				continue
			}
		}
		p.unset(in, was.key.String())
	}
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
		was := old.find(is.key)
		var had []netip.AddrPort
		if was != nil {
			had = was.slots.all
		}
		p.slots(is, had)
		r.tables[is.key.family].use(is, 1)
		if p.mute {
			continue
		}
		in, value := is.entry()
		if was != nil && was.port == is.port {
			if before, same := was.entry(); before == in && same == value {
				continue
			}
		}
		p.set(in, is.key.String(), value, comment(now.service.Name, is.port))
	}
	r.count(now.service, 1)
}

// slots adds the slots that differ from had.
func (p *patch) slots(f *front, had []netip.AddrPort) {
	if p.mute {
		return
	}
	in := f.key.slotSet()
	var prefix []byte
	var scratch [64]byte
	for slot, ep := range f.slots.all {
		if slot < len(had) && had[slot] == ep {
			continue
		}
		if prefix == nil {
			prefix = append(f.key.append(make([]byte, 0, 64)), " . "...)
		}
		key := string(strconv.AppendInt(prefix, int64(slot), 10))
		p.set(in, key, string(appendEndpoint(scratch[:0], ep)), "")
	}
}

func appendEndpoint(b []byte, ep netip.AddrPort) []byte {
	b = ep.Addr().AppendTo(b)
	b = append(b, " . "...)
	return strconv.AppendUint(b, uint64(ep.Port()), 10)
}

// use counts a front's chain.
func (t *table) use(f *front, by int) {
	switch n := f.slots.active; {
	case n == 0:
	case f.key.nodePort():
		t.nodePortPicks.add(n, by)
	default:
		t.picks.add(n, by)
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
	settleChains(&t.picks, t.idlePicks, func(n int) { p.put = append(p.put, t.pick(n)) })
	settleChains(&t.nodePortPicks, t.idleNodePortPicks, func(n int) { p.put = append(p.put, t.nodePortPick(cfg, n)) })
}

func settleChains(c *counted[int], idle map[int]struct{}, put func(n int)) {
	began, ended := c.take(cmp.Compare[int])
	for _, n := range began {
		if _, declared := idle[n]; declared {
			delete(idle, n)
			continue
		}
		put(n)
	}
	for _, n := range ended {
		idle[n] = struct{}{}
	}
}

// Sweep removes the chains that have no use. It returns nil if there is none.
func (r *Renderer) Sweep() *weftv1.Patch {
	out := &weftv1.Patch{Fragment: Fragment}
	for _, t := range r.tables {
		var names []string
		for _, n := range slices.Sorted(maps.Keys(t.idlePicks)) {
			names = append(names, pickName(n))
		}
		for _, n := range slices.Sorted(maps.Keys(t.idleNodePortPicks)) {
			names = append(names, nodePortPickName(n))
		}
		clear(t.idlePicks)
		clear(t.idleNodePortPicks)
		if len(names) > 0 && t.on {
			out.Tables = append(out.Tables, &weftv1.TablePatch{Family: t.words.table, Name: Table, DeleteChains: names})
		}
	}
	if len(out.Tables) == 0 {
		return nil
	}
	return out
}

// message returns the patch of a table, nil if it is empty.
func (p *patch) message(t *table) *weftv1.TablePatch {
	out := &weftv1.TablePatch{Family: t.words.table, Name: Table, PutChains: p.put}
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
	if len(out.Elements) == 0 && len(out.PutChains) == 0 {
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
