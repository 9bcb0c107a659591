package knft

import (
	"cmp"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/nft"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// redeclareSet can change only timeout, GC interval and size of an existing set, as in the kernel.
func (c *transaction) redeclareSet(t *table, old, s *set) error {
	name := s.decl.GetName()
	if old.adopted && (old.packed.Key.Len == 0 || sameTypes(old.packed, s.packed)) {
		// Only the kernel's declaration was known so far.
		save(c, old)
		old.decl, old.packed, old.adopted = s.decl, s.packed, false
		c.touch(t, itemID{kindSet, name}).whole = true
		return nil
	}
	if !sameTypes(old.packed, s.packed) {
		return exists("%s already exists in table %s, with another declaration", name, t.id)
	}
	d := client.Declaration(old.decl)
	if s.packed.Timeout != 0 {
		d.Timeout = s.decl.GetTimeout()
	}
	if s.packed.GCInterval != 0 {
		d.GcInterval = s.decl.GetGcInterval()
	}
	d.Size = cmp.Or(s.decl.GetSize(), d.GetSize())
	now, err := newSet(t.id.Family, d, s.packed.Map)
	if err != nil {
		return err
	}
	if now.packed.Equal(old.packed) {
		return nil
	}
	save(c, &old.decl)
	save(c, &old.packed)
	old.decl, old.packed = now.decl, now.packed
	c.touch(t, itemID{kindSet, name}).whole = true
	return nil
}

func sameTypes(a, b *nftset.Set) bool {
	return a.Map == b.Map && a.Verdict == b.Verdict && a.Key.ID == b.Key.ID && a.Key.Len == b.Key.Len &&
		a.Data.ID == b.Data.ID && (a.Verdict || a.Data.Len == b.Data.Len) && a.Flags == b.Flags
}

func (c *transaction) flushSet(t *table, s *set) {
	if len(s.elements) == 0 && !s.unknown {
		return
	}
	save(c, &s.elements)
	save(c, &s.unknown)
	s.elements, s.unknown = make(map[string]*weftv1.Element), false
	c.touch(t, itemID{kindSet, s.decl.GetName()}).whole = true
}

func (c *transaction) setOf(id nft.TableID, name string) (*table, *set, error) {
	return partOf(c, id, itemID{kindSet, name}, func(v *view) (*set, error) {
		m := v.sets[name]
		return newSet(id.Family, client.Declaration(m.GetSet()), m.GetMap())
	})
}
