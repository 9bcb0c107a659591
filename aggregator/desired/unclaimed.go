package desired

import "github.com/weft-proxy/weft/nft"

// Unclaimed is an object, or a part of one, that was in the kernel at Adopt
// and that no fragment is known for.
type Unclaimed struct {
	Table nft.TableID
	// Object is "chain input", "set blocked" or "counter drops"; "" is the table
	// itself.
	Object string
	// Rules and Elements count the parts of the object that no fragment owns.
	Rules, Elements int
}

// Unclaimed lists what DropUnclaimed would remove, in a fixed order.
func (s *State) Unclaimed() []Unclaimed {
	var all []Unclaimed
	for _, h := range s.unclaimed.holdings() {
		if len(h.chains) == 0 && len(h.sets) == 0 && len(h.objects) == 0 {
			all = append(all, Unclaimed{Table: h.table.id})
		}
		for _, id := range sortedObjects(h.objects) {
			all = append(all, Unclaimed{Table: h.table.id, Object: describeObject(id)})
		}
		for _, name := range sortedKeys(h.chains) {
			all = append(all, Unclaimed{Table: h.table.id, Object: "chain " + name, Rules: len(h.chains[name].rules)})
		}
		for _, name := range sortedKeys(h.sets) {
			sh := h.sets[name]
			if sh.waiting || sh.passive && len(h.table.sets[name].shares) > 1 {
				continue
			}
			all = append(all, Unclaimed{Table: h.table.id, Object: "set " + name, Elements: sh.elements.len()})
		}
	}
	return all
}

// DropUnclaimed gives up everything that Unclaimed lists. It counts as a
// change like an Apply.
//
// Possible errors: *[Rejection], when a fragment refers to some of it.
func (s *State) DropUnclaimed() error {
	return s.change(Key{}, func(a *apply) {
		a.f = s.unclaimed
		for _, h := range s.unclaimed.holdings() {
			for o := range h.parts() {
				if sh := h.sets[o.base().id.Name]; o.base().id.Kind != kindSet || !sh.waiting {
					a.giveUp(h, o.base().id)
				}
			}
			a.releaseUnclaimed(h.table)
		}
	})
}
