package render

import (
	"maps"
	"net/netip"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// Snapshot returns the whole fragment: what all updates so far lead to.
func (r *Renderer) Snapshot() *weftv1.Fragment {
	var patches [model.Families]patch
	for f := range patches {
		patches[f].slab.free = make([]weftv1.Element, r.weigh(model.Family(f)))
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.services), model.CompareKeys) {
		s := r.services[key]
		for i := range s.fronts {
			f := &s.fronts[i]
			patches[f.key.family].front(key, f, nil)
		}
		for _, a := range s.affinities {
			p, t := &patches[a.family], r.tables[a.family]
			for l := range numLists {
				if a.lists[l].used {
					p.maps = append(p.maps, a.declare(t.words, l))
				}
				for ep := range a.lists[l].endpoints.All() {
					p.chain(a.chain(t.words, l, ep))
				}
			}
		}
	}
	out := &weftv1.Fragment{Name: Fragment}
	for f, t := range r.tables {
		switch {
		case t.aside.on && t.aside.kept != nil:
			out.Tables = append(out.Tables, t.aside.kept)
		case t.on && !t.aside.on:
			out.Tables = append(out.Tables, t.message(&r.cfg, &patches[f]))
		}
	}
	return out
}

// weigh estimates the number of elements of one family.
func (r *Renderer) weigh(f model.Family) (n int) {
	for _, s := range r.services {
		for i := range s.fronts {
			if front := &s.fronts[i]; front.key.family == f {
				n += 1 + front.elements() + len(front.sources)
			}
		}
	}
	t := r.tables[f]
	return n + len(t.clusterIPs.uses) + len(t.hairpins.uses) + len(t.nodePortKeys) + len(t.serviceCIDRs)
}

// message returns the table with all that it holds.
func (t *table) message(cfg *Config, p *patch) *weftv1.Table {
	p.keys(nodePortIPs, nil, t.nodePortKeys)
	p.keys(serviceCIDRs, nil, t.serviceCIDRs)
	for _, a := range t.clusterIPs.keys(netip.Addr.Compare) {
		p.set(clusterIPs, a.String(), "", "")
	}
	for _, h := range t.hairpins.keys(hairpinKey.compare) {
		p.set(hairpin, h.String(), "", "")
	}
	for _, v := range slices.SortedFunc(maps.Keys(t.declared()), verdict.compare) {
		p.chain(t.pick(cfg, v))
	}
	for _, name := range slices.Sorted(maps.Keys(t.idleChains)) {
		p.chain(chain(name))
	}
	for _, name := range slices.Sorted(maps.Keys(t.idleMaps)) {
		p.maps = append(p.maps, declareAffinity(t.words, name))
	}
	out := &weftv1.Table{Family: t.words.table, Name: Table, Chains: append(t.chains(cfg), p.put...)}
	for s := range numSets {
		d := t.declare(s)
		d.Elements = p.add[s]
		if declarations[s].isMap {
			out.Maps = append(out.Maps, d)
		} else {
			out.Sets = append(out.Sets, d)
		}
		if declarations[s].conntrack {
			out.ConntrackMaps = append(out.ConntrackMaps, d.GetName())
		}
	}
	for _, m := range p.maps {
		out.Maps = append(out.Maps, m)
		out.AffinityMaps = append(out.AffinityMaps, m.GetName())
	}
	return out
}

// declared returns the chains that pick, used or idle.
func (t *table) declared() map[verdict]struct{} {
	all := maps.Clone(t.idlePicks)
	for v := range t.picks.uses {
		all[v] = struct{}{}
	}
	return all
}
