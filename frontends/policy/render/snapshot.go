package render

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Snapshot returns the last snapshot with all patches since then.
func (r *Renderer) Snapshot() *weftv1.Fragment {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.compareWithPrevious()
	out := &weftv1.Fragment{Name: Fragment}
	for _, t := range r.tables {
		out.Tables = append(out.Tables, t.message())
	}
	if r.bridge.declared {
		out.Tables = append(out.Tables, r.bridge.message())
	}
	return out
}

func (t *table) message() *weftv1.Table {
	out := &weftv1.Table{Family: t.family.table, Name: Table, Chains: []*weftv1.Chain{t.egressAllowed(), t.middle(), t.fromPod()}}
	out.Sets, out.Maps = t.declarations(t.cfg.Start)
	elements := t.elements()
	for _, s := range out.Sets {
		s.Elements = elements[s.GetName()]
	}
	for i, m := range out.Maps {
		m.Elements = t.podElements(lookup(i%len(mapNames)), m.GetName())
	}
	for _, name := range slices.Sorted(maps.Keys(t.hooks.declared)) {
		out.Chains = append(out.Chains, t.hooks.declared[name])
	}
	declared := t.left.sorted()
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		if o := t.byName[name]; o.declared {
			declared = append(declared, o)
		}
	}
	var all patch
	for _, o := range declared {
		all.declare(o)
	}
	out.Chains, out.Objects = append(out.Chains, all.chains...), all.counters
	out.Sets, out.Maps = append(out.Sets, all.sets...), append(out.Maps, all.maps...)
	return out
}

func (m *members) message() *weftv1.Set {
	d := m.declaration
	out := &weftv1.Set{Name: d.GetName(), Type: d.GetType(), Comment: d.GetComment()}
	for _, k := range m.inForce() {
		out.Elements = append(out.Elements, &weftv1.Element{Key: m.key(k)})
	}
	return out
}

// elements returns the elements of the table's own sets, by set.
func (t *table) elements() map[string][]*weftv1.Element {
	out := make(map[string][]*weftv1.Element)
	add := func(set, key string) { out[set] = append(out[set], &weftv1.Element{Key: key}) }
	sorted := func(ends map[end]struct{}) []end { return slices.SortedFunc(maps.Keys(ends), compareEnds) }
	for _, k := range t.podCIDRs {
		add(setPodCIDRs, k)
	}
	for _, a := range slices.SortedFunc(maps.Keys(t.recheck.inKernel), netip.Addr.Compare) {
		add(setRecheck, a.String())
	}
	for _, e := range sorted(t.selected) {
		add(setSelf, e.key()+separator+e.key())
		add(setSelected, e.key())
	}
	for _, e := range sorted(t.linked) {
		add(setLinks, e.key())
	}
	for _, e := range sorted(t.present) {
		add(setKnown, e.key())
	}
	return out
}

func (t *table) podElements(d lookup, name string) (out []*weftv1.Element) {
	for _, at := range slices.SortedFunc(maps.Keys(t.entries[d]), compareEnds) {
		if e := t.entries[d][at]; e.sent != nil && at.chains(d) == name {
			out = append(out, &weftv1.Element{Key: at.key(), Value: "goto " + e.sent.name, Comment: e.sentPod})
		}
	}
	return out
}

// Idle implements publish.Cleaner.
func (r *Renderer) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tables {
		if len(t.objects.idle)+len(t.hooks.idle)+len(t.left) > 0 {
			return true
		}
	}
	return false
}

// Cleanup implements publish.Cleaner.
func (r *Renderer) Cleanup() *weftv1.Patch {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &weftv1.Patch{Fragment: Fragment}
	for _, t := range r.tables {
		if len(t.objects.idle)+len(t.hooks.idle)+len(t.left) > 0 {
			p.Tables = append(p.Tables, t.cleanup())
		}
	}
	if len(p.Tables) == 0 {
		return nil
	}
	return p
}

func (t *table) cleanup() *weftv1.TablePatch {
	out := &weftv1.TablePatch{Family: t.family.table, Name: Table}
	out.DeleteChains = slices.Sorted(maps.Keys(t.hooks.idle))
	for _, name := range out.DeleteChains {
		delete(t.hooks.declared, name)
	}
	t.hooks.idle = make(map[string]struct{})
	idle := slices.AppendSeq(t.left.sorted(), maps.Keys(t.objects.idle))
	slices.SortFunc(idle, func(a, b *object) int {
		return cmp.Or(cmp.Compare(a.removal(), b.removal()), strings.Compare(a.name, b.name))
	})
	most := manyObjects
	for _, o := range idle {
		if most <= 0 {
			break
		}
		most -= t.size(o)
		switch c := o.content.(type) {
		case *weftv1.Chain:
			out.DeleteChains = append(out.DeleteChains, o.name)
		case *weftv1.Object:
			out.DeleteObjects = append(out.DeleteObjects, &weftv1.ObjectReference{Kind: c.GetKind(), Name: o.name})
		default:
			out.DeleteSets = append(out.DeleteSets, o.name)
		}
		if t.left[o.name] == o {
			delete(t.left, o.name)
		} else {
			t.forgetUnused(o)
		}
	}
	return out
}

// naming has the prefixes of objects that name others, in the order of removal.
var naming = []string{mapNames[ingress], mapNames[egress], mapNames[untracked], "admin", "baseline", "policy", "dispatch", "ports", "deny"}

func (o *object) removal() int {
	prefix, _, _ := strings.Cut(o.name, "-")
	if n := slices.Index(naming, prefix); n >= 0 {
		return n
	}
	return len(naming)
}
