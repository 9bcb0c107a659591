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

// batch is a copy of the tables to which ops are applied.
type batch struct {
	tables   map[nft.TableID]*table
	handles  uint64
	assigned map[*kernel.Handle]uint64
}

// do applies one op, and returns 0 or why it is refused.
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
		return 0, ""
	case kernel.AddChain:
		if t.chains[o.Chain.Name] == nil {
			t.chains[o.Chain.Name] = &chain{}
		}
		t.chains[o.Chain.Name].decl = o.Chain
		return 0, ""
	case kernel.DeleteChain:
		c := t.chains[o.Name]
		inUse := c != nil && len(c.rules) > 0 || t.refers(func(r *compile.Rule) []string { return r.Chains }, o.Name) || t.leadsTo(o.Name)
		return remove(t.chains, o.Name, inUse), ""
	case kernel.AddRule:
		return b.addRule(t, o)
	case kernel.DeleteRule:
		return b.deleteRule(t, o), ""
	case kernel.AddSet:
		if t.sets[o.Set.Name] == nil {
			t.sets[o.Set.Name] = &set{decl: o.Set, elements: map[string]nftset.Element{}}
		}
		return 0, ""
	case kernel.DeleteSet:
		return remove(t.sets, o.Name, t.refers(func(r *compile.Rule) []string { return r.Sets }, o.Name)), ""
	case kernel.FlushSet:
		if t.sets[o.Name] == nil {
			return syscall.ENOENT, ""
		}
		clear(t.sets[o.Name].elements)
		return 0, ""
	case kernel.AddElements:
		return t.addElements(o)
	case kernel.DeleteElements:
		return t.deleteElements(o), ""
	case kernel.AddObject:
		if ref := o.Object.Ref(); t.objects[ref] == nil {
			t.objects[ref] = o.Object // one that is there stays as it is
		}
		return 0, ""
	case kernel.DeleteObject:
		return remove(t.objects, o.Ref, t.usesObject(o.Ref)), ""
	case kernel.AddFlowtable:
		t.flowtables[o.Flowtable.Name] = o.Flowtable
		return 0, ""
	case kernel.DeleteFlowtable:
		return remove(t.flowtables, o.Name, t.refers(func(r *compile.Rule) []string { return r.Flowtables }, o.Name)), ""
	default:
		return syscall.EOPNOTSUPP, ""
	}
}

// remove deletes an object, unless something refers to it.
func remove[K comparable, V any](m map[K]V, key K, inUse bool) syscall.Errno {
	if _, ok := m[key]; !ok {
		return syscall.ENOENT
	}
	if inUse {
		return syscall.EBUSY
	}
	delete(m, key)
	return 0
}

// refers reports whether a rule of the table refers to a name.
func (t *table) refers(names func(*compile.Rule) []string, name string) bool {
	for _, c := range t.chains {
		if slices.ContainsFunc(c.rules, func(r rule) bool { return slices.Contains(names(r.rule), name) }) {
			return true
		}
	}
	return false
}

// leadsTo reports whether an element of a verdict map leads to a chain.
func (t *table) leadsTo(chain string) bool {
	for _, s := range t.sets {
		for _, e := range s.elements {
			if s.decl.Verdict && target(e) == chain {
				return true
			}
		}
	}
	return false
}

// usesObject reports whether a rule or an element refers to an object.
func (t *table) usesObject(ref object.Ref) bool {
	for _, c := range t.chains {
		if slices.ContainsFunc(c.rules, func(r rule) bool { return slices.Contains(r.rule.Objects, ref) }) {
			return true
		}
	}
	for _, s := range t.sets {
		for _, e := range s.elements {
			if s.decl.Object == ref.Kind && e.Data == ref.Name {
				return true
			}
		}
	}
	return false
}

// target returns the chain that an element of a verdict map leads to, or "".
func target(e nftset.Element) string {
	v, err := nftset.ParseVerdictData(e.Data)
	if err != nil {
		return ""
	}
	return v.Chain
}

func (b *batch) addRule(t *table, o kernel.AddRule) (syscall.Errno, string) {
	c := t.chains[o.Chain]
	if c == nil {
		return syscall.ENOENT, ""
	}
	if missing := t.missing(o.Rule); missing != "" {
		return syscall.ENOENT, missing
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

// missing returns what a rule refers to and the table does not have, or "".
func (t *table) missing(r *compile.Rule) string {
	for _, name := range r.Sets {
		if t.sets[name] == nil {
			return "set " + name
		}
	}
	for _, name := range r.Chains {
		if t.chains[name] == nil {
			return "chain " + name
		}
	}
	for _, ref := range r.Objects {
		if t.objects[ref] == nil {
			return "object " + ref.Name
		}
	}
	for _, name := range r.Flowtables {
		if t.flowtables[name] == nil {
			return "flowtable " + name
		}
	}
	return ""
}

func (b *batch) handle(h *kernel.Handle) uint64 {
	if n, ok := b.assigned[h]; ok {
		return n
	}
	return h.N
}

func (b *batch) deleteRule(t *table, o kernel.DeleteRule) syscall.Errno {
	c := t.chains[o.Chain]
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

// keyOf returns the key of an element in the map of a set's elements.
func keyOf(e nftset.Element) string { return e.Key + "\x00" + e.KeyEnd }

func (t *table) addElements(o kernel.AddElements) (syscall.Errno, string) {
	s := t.sets[o.Set.Name]
	if s == nil {
		return syscall.ENOENT, ""
	}
	for _, e := range o.Elements {
		if old, ok := s.elements[keyOf(e)]; ok && old.Data != e.Data {
			return syscall.EEXIST, ""
		}
		if s.decl.Object != "" && t.objects[object.Ref{Kind: s.decl.Object, Name: e.Data}] == nil {
			return syscall.ENOENT, "object " + e.Data
		}
		if chain := target(e); s.decl.Verdict && chain != "" && t.chains[chain] == nil {
			return syscall.ENOENT, "chain " + chain
		}
		s.elements[keyOf(e)] = e
	}
	return 0, ""
}

func (t *table) deleteElements(o kernel.DeleteElements) syscall.Errno {
	s := t.sets[o.Set.Name]
	if s == nil {
		return syscall.ENOENT
	}
	for _, e := range o.Elements {
		if errno := remove(s.elements, keyOf(e), false); errno != 0 {
			return errno
		}
	}
	return 0
}
