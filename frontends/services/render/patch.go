package render

import (
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

type patch struct {
	add    [numSets][]*weftv1.Element
	remove [numSets][]string
	// elements without comments
	addPacked, removePacked [numSets]packed
	put                     []*weftv1.Chain
	// for session affinity
	maps, sets []*weftv1.Set
	deleteSets []string
	elements   []*weftv1.ElementPatch
	arena      arena
	// discard drops elements, so only the renderer's state changes.
	discard bool
}

// set copies the texts.
func (p *patch) set(in set, key, value, comment []byte) {
	if !p.discard {
		p.add[in] = append(p.add[in], p.arena.element(key, value, comment))
	}
}

func (p *patch) key(in set, key string) { p.set(in, []byte(key), nil, nil) }

func (p *patch) unset(in set, key string) {
	if !p.discard {
		p.remove[in] = append(p.remove[in], key)
	}
}

func (p *patch) pack(in set, key, value []byte) {
	if !p.discard {
		p.addPacked[in].add(key, value)
	}
}

func (p *patch) unpack(in set, key []byte) {
	if !p.discard {
		p.removePacked[in].add(key, nil)
	}
}

func (p *patch) chain(c *weftv1.Chain) {
	if !p.discard {
		p.put = append(p.put, c)
	}
}

func (p *patch) keys(in set, from, to []string) {
	for _, k := range from {
		if !slices.Contains(to, k) {
			p.unset(in, k)
		}
	}
	for _, k := range to {
		if !slices.Contains(from, k) {
			p.key(in, k)
		}
	}
}

func (p *patch) message(t *table) *weftv1.TablePatch {
	p.arena.seal()
	out := &weftv1.TablePatch{Family: t.names.table, Name: Table, PutChains: p.put, PutMaps: p.maps, PutSets: p.sets, DeleteSets: p.deleteSets, Elements: p.elements}
	for s := range numSets {
		remove := p.remove[s]
		if len(remove) > 0 && len(p.add[s]) > 0 {
			again := make(map[string]struct{}, len(p.add[s]))
			for _, e := range p.add[s] {
				again[e.GetKey()] = struct{}{}
			}
			remove = slices.DeleteFunc(remove, func(k string) bool { _, ok := again[k]; return ok })
			p.remove[s] = remove
		}
		p.removePacked[s] = p.removePacked[s].without(&p.addPacked[s])
		if len(remove)+len(p.add[s])+len(p.removePacked[s].list)+len(p.addPacked[s].list) == 0 {
			continue
		}
		out.Elements = append(out.Elements, &weftv1.ElementPatch{
			Set: declarations[s].name, Add: p.add[s], Remove: remove, AddPacked: p.addPacked[s].list, RemovePacked: p.removePacked[s].list,
		})
	}
	if len(out.Elements)+len(out.PutChains)+len(out.PutMaps)+len(out.DeleteSets) == 0 {
		return nil
	}
	return out
}
