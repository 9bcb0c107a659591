package render

import (
	"maps"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// Snapshot returns the whole fragment.
func (r *Renderer) Snapshot() *weftv1.Fragment {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.AppendSeq(make([]*rendered, 0, len(r.services)), maps.Values(r.services))
	slices.SortFunc(all, func(a, b *rendered) int { return model.CompareKeys(a.service.Name, b.service.Name) })
	patches := r.tables.room(all)
	for _, s := range all {
		for i := range s.listeners {
			f := &s.listeners[i]
			p := &patches[f.key.family]
			for _, g := range f.groups() {
				p.setSlots(f.key, &g, &group{}, nil)
			}
			p.listener(s.service.Name, f, nil)
		}
		for _, a := range s.affinities {
			p, t := &patches[a.family], r.tables[a.family]
			for l := range numLists {
				if a.shape.lists[l] {
					a.declare(p, t.names, l)
				}
			}
			for _, c := range a.chains(t, &r.cfg) {
				p.chain(c)
			}
		}
	}
	out := &weftv1.Fragment{Name: Fragment}
	for f, t := range r.tables {
		switch {
		case t.frozen.on && t.frozen.kept != nil:
			out.Tables = append(out.Tables, t.frozen.kept)
		case t.on && !t.frozen.on:
			out.Tables = append(out.Tables, t.message(&r.cfg, &patches[f]))
		}
	}
	return out
}

// room allocates the patches for all listeners at once: growing them would double the memory.
func (ts *tablesByFamily) room(all []*rendered) (patches [model.NumFamilies]patch) {
	var n [model.NumFamilies][numSets]int
	for _, s := range all {
		for i := range s.listeners {
			f := &s.listeners[i]
			of := &n[f.key.family]
			for r, v := range f.verdicts {
				of[f.in(role(r))] += index(v.to != absent)
			}
		}
	}
	for f, t := range ts {
		n[f][nodePortIPs] = len(t.nodePortKeys)
		n[f][serviceCIDRs] = len(t.serviceCIDRs)
		total := 0
		for s := range numSets {
			patches[f].add[s] = make([]*weftv1.Element, 0, n[f][s])
			total += n[f][s]
		}
		patches[f].arena.free = make([]weftv1.Element, total)
	}
	return patches
}

func (t *table) message(cfg *Config, p *patch) *weftv1.Table {
	p.keys(nodePortIPs, nil, t.nodePortKeys)
	p.keys(serviceCIDRs, nil, t.serviceCIDRs)
	addKeys(p, clusterIPs, t.clusterIPs.keys(), packAddr)
	addKeys(p, hairpin, t.hairpins.keys(), hairpinKey.pack)
	addKeys(p, loopbackNodePorts, t.rejected.keys(), listenerKey.pack)
	for _, r := range t.hooks.declared() {
		p.hooks(r)
	}
	for _, v := range t.picks.declared() {
		p.chain(t.pick(cfg, v))
	}
	for _, s := range t.sources.keys() {
		p.chain(s.chain(t, cfg))
	}
	for _, l := range t.limited.keys() {
		p.chain(l.chain())
	}
	for _, name := range slices.Sorted(maps.Keys(t.idleChains)) {
		p.chain(chain(name))
	}
	p.arena.seal()
	out := &weftv1.Table{Family: t.names.table, Name: Table, Objects: append(cfg.dropCounters(), t.loopbackCounters()...), Chains: append(t.chains(cfg), p.put...)}
	for s := range numSets {
		if !cfg.has(s) || s == loopbackNodePorts && t.loopback == model.LoopbackIgnored {
			continue
		}
		d := t.declare(cfg, s)
		d.Elements, d.Packed = p.add[s], p.addPacked[s].list
		if declarations[s].isMap {
			out.Maps = append(out.Maps, d)
		} else {
			out.Sets = append(out.Sets, d)
		}
	}
	out.Sets, out.Maps = append(out.Sets, p.sets...), append(out.Maps, p.maps...)
	return out
}
