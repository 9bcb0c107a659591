package aggregatortest

import (
	"slices"
	"syscall"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// batch is a copy of the tables, changed by ops.
type batch struct {
	tables   map[nft.TableID]*table
	handles  uint64
	assigned map[*kernel.Handle]uint64
}

// do returns 0 or the reason of a refusal.
func (b *batch) do(op kernel.Op) (errno syscall.Errno, text string) {
	id := kernel.TableOf(op)
	t := b.tables[id]
	if o, ok := op.(kernel.AddTable); ok {
		if t == nil {
			t = newTable(o.Comment)
			b.tables[id] = t
		}
		t.dormant = o.Dormant
		return 0, ""
	}
	if t == nil {
		return syscall.ENOENT, ""
	}
	switch o := op.(type) {
	case kernel.DeleteTable:
		delete(b.tables, id)
	case kernel.AddChain:
		t.add("chain "+o.Chain.Name, &chain{})
		item[chain](t, "chain "+o.Chain.Name).decl = o.Chain
	case kernel.DeleteChain:
		return t.remove("chain " + o.Name), ""
	case kernel.AddRule:
		return b.addRule(t, o)
	case kernel.DeleteRule:
		return b.deleteRule(t, o), ""
	case kernel.AddSet:
		t.add("set "+o.Set.Name, &set{decl: o.Set, elements: map[string]nftset.Element{}})
	case kernel.DeleteSet:
		return t.remove("set " + o.Name), ""
	case kernel.FlushSet:
		s := item[set](t, "set "+o.Name)
		if s == nil {
			return syscall.ENOENT, ""
		}
		clear(s.elements)
	case kernel.AddElements:
		return t.addElements(o)
	case kernel.DeleteElements:
		return t.deleteElements(o), ""
	case kernel.AddObject:
		t.add(o.Object.Ref().String(), o.Object)
	case kernel.DeleteObject:
		return t.remove(o.Ref.String()), ""
	case kernel.AddFlowtable:
		t.items["flowtable "+o.Flowtable.Name] = o.Flowtable
	case kernel.DeleteFlowtable:
		return t.remove("flowtable " + o.Name), ""
	default:
		return syscall.EOPNOTSUPP, ""
	}
	return 0, ""
}

func (t *table) add(name string, it any) {
	if t.items[name] == nil {
		t.items[name] = it
	}
}

func (t *table) remove(name string) syscall.Errno {
	if t.items[name] == nil {
		return syscall.ENOENT
	}
	if c := item[chain](t, name); c != nil && len(c.rules) > 0 || t.refersTo(name) {
		return syscall.EBUSY
	}
	delete(t.items, name)
	return 0
}

func (t *table) refersTo(name string) bool {
	for _, it := range t.items {
		switch it := it.(type) {
		case *chain:
			if slices.ContainsFunc(it.rules, func(r rule) bool { return slices.Contains(references(r.rule), name) }) {
				return true
			}
		case *set:
			for _, e := range it.elements {
				if it.reference(e) == name {
					return true
				}
			}
		}
	}
	return false
}

func references(r *compile.Rule) []string {
	var out []string
	for _, name := range r.Sets {
		out = append(out, "set "+name)
	}
	for _, name := range r.Chains {
		out = append(out, "chain "+name)
	}
	for _, ref := range r.Objects {
		out = append(out, ref.String())
	}
	for _, name := range r.Flowtables {
		out = append(out, "flowtable "+name)
	}
	return out
}

func (s *set) reference(e nftset.Element) string {
	if s.decl.Object != "" {
		return object.Ref{Kind: s.decl.Object, Name: e.Data}.String()
	}
	if v, err := nftset.ParseVerdictData(e.Data); s.decl.Verdict && err == nil && v.Chain != "" {
		return "chain " + v.Chain
	}
	return ""
}

func (b *batch) addRule(t *table, o kernel.AddRule) (syscall.Errno, string) {
	c := item[chain](t, "chain "+o.Chain)
	if c == nil {
		return syscall.ENOENT, ""
	}
	for _, name := range references(o.Rule) {
		if t.items[name] == nil {
			return syscall.ENOENT, name
		}
	}
	at := 0
	if o.After != nil {
		at = 1 + slices.IndexFunc(c.rules, func(r rule) bool { return r.handle == b.handle(o.After) })
		if at == 0 {
			return syscall.ENOENT, "after"
		}
	}
	b.handles++
	c.rules = slices.Insert(c.rules, at, rule{handle: b.handles, rule: o.Rule, owner: o.Owner})
	b.assigned[o.Handle] = b.handles
	return 0, ""
}

func (b *batch) handle(h *kernel.Handle) uint64 {
	if n, ok := b.assigned[h]; ok {
		return n
	}
	return h.N
}

func (b *batch) deleteRule(t *table, o kernel.DeleteRule) syscall.Errno {
	c := item[chain](t, "chain "+o.Chain)
	if c == nil {
		return syscall.ENOENT
	}
	i := slices.IndexFunc(c.rules, func(r rule) bool { return r.handle == b.handle(o.Handle) })
	if i < 0 {
		return syscall.ENOENT
	}
	c.rules = slices.Delete(c.rules, i, i+1)
	return 0
}

func keyOf(e nftset.Element) string { return e.Key + "\x00" + e.KeyEnd }

func (t *table) addElements(o kernel.AddElements) (syscall.Errno, string) {
	s := item[set](t, "set "+o.Set.Name)
	if s == nil {
		return syscall.ENOENT, ""
	}
	for _, e := range o.Elements {
		if old, ok := s.elements[keyOf(e)]; ok && old.Data != e.Data {
			return syscall.EEXIST, ""
		}
		if name := s.reference(e); name != "" && t.items[name] == nil {
			return syscall.ENOENT, name
		}
		s.elements[keyOf(e)] = e
	}
	return 0, ""
}

func (t *table) deleteElements(o kernel.DeleteElements) syscall.Errno {
	s := item[set](t, "set "+o.Set.Name)
	if s == nil {
		return syscall.ENOENT
	}
	for _, e := range o.Elements {
		if _, ok := s.elements[keyOf(e)]; !ok {
			return syscall.ENOENT
		}
		delete(s.elements, keyOf(e))
	}
	return 0
}
