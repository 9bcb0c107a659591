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

// batch is a copy on which ops are tried.
type batch struct {
	tables   map[nft.TableID]*table
	handles  uint64
	assigned map[*kernel.Handle]uint64
}

// do carries out one op, and returns 0 or why it is refused.
func (b *batch) do(op kernel.Op) (syscall.Errno, string) {
	switch o := op.(type) {
	case kernel.AddTable:
		if b.tables[o.Table] == nil {
			b.tables[o.Table] = newTable(o.Comment)
		}
		b.tables[o.Table].dormant = o.Dormant
		return 0, ""
	case kernel.DeleteTable:
		if b.tables[o.Table] == nil {
			return syscall.ENOENT, ""
		}
		delete(b.tables, o.Table)
		return 0, ""
	case kernel.AddChain:
		return b.addChain(o)
	case kernel.DeleteChain:
		return b.deleteChain(o)
	case kernel.AddRule:
		return b.addRule(o)
	case kernel.DeleteRule:
		return b.deleteRule(o)
	case kernel.AddSet:
		t := b.tables[o.Table]
		if t == nil {
			return syscall.ENOENT, ""
		}
		if t.sets[o.Set.Name] == nil {
			t.sets[o.Set.Name] = &set{decl: o.Set, elements: map[string]nftset.Element{}}
		}
		return 0, ""
	case kernel.DeleteSet:
		return b.deleteSet(o)
	case kernel.FlushSet:
		t := b.tables[o.Table]
		if t == nil || t.sets[o.Name] == nil {
			return syscall.ENOENT, ""
		}
		clear(t.sets[o.Name].elements)
		return 0, ""
	case kernel.AddElements:
		return b.addElements(o)
	case kernel.DeleteElements:
		return b.deleteElements(o)
	default:
		return b.doObject(op)
	}
}

func (b *batch) addChain(o kernel.AddChain) (syscall.Errno, string) {
	t := b.tables[o.Table]
	if t == nil {
		return syscall.ENOENT, ""
	}
	if c := t.chains[o.Chain.Name]; c != nil {
		c.decl = o.Chain
		return 0, ""
	}
	t.chains[o.Chain.Name] = &chain{decl: o.Chain}
	return 0, ""
}

// deleteChain refuses chains that have rules or that something refers to.
func (b *batch) deleteChain(o kernel.DeleteChain) (syscall.Errno, string) {
	t := b.tables[o.Table]
	if t == nil || t.chains[o.Name] == nil {
		return syscall.ENOENT, ""
	}
	if len(t.chains[o.Name].rules) > 0 || t.refers(func(r *compile.Rule) []string { return r.Chains }, o.Name) {
		return syscall.EBUSY, ""
	}
	for _, s := range t.sets {
		for _, e := range s.elements {
			if s.decl.Verdict && target(e) == o.Name {
				return syscall.EBUSY, ""
			}
		}
	}
	delete(t.chains, o.Name)
	return 0, ""
}

// target is the chain that an element of a verdict map leads to, or "".
func target(e nftset.Element) string {
	v, err := nftset.ParseVerdictData(e.Data)
	if err != nil {
		return ""
	}
	return v.Chain
}

// refers reports whether a rule of the table refers to a name.
func (t *table) refers(names func(*compile.Rule) []string, name string) bool {
	for _, c := range t.chains {
		for _, r := range c.rules {
			if slices.Contains(names(r.rule), name) {
				return true
			}
		}
	}
	return false
}

func (b *batch) addRule(o kernel.AddRule) (syscall.Errno, string) {
	t := b.tables[o.Table]
	if t == nil || t.chains[o.Chain] == nil {
		return syscall.ENOENT, ""
	}
	for _, name := range o.Rule.Sets {
		if t.sets[name] == nil {
			return syscall.ENOENT, "set " + name
		}
	}
	for _, name := range o.Rule.Chains {
		if t.chains[name] == nil {
			return syscall.ENOENT, "chain " + name
		}
	}
	if errno, text := t.missing(o.Rule); errno != 0 {
		return errno, text
	}
	b.handles++
	at := 0
	c := t.chains[o.Chain]
	if o.After != nil {
		i := slices.IndexFunc(c.rules, func(r rule) bool { return r.handle == b.handle(o.After) })
		if i < 0 {
			return syscall.ENOENT, "after"
		}
		at = i + 1
	}
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

func (b *batch) deleteRule(o kernel.DeleteRule) (syscall.Errno, string) {
	t := b.tables[o.Table]
	if t == nil || t.chains[o.Chain] == nil {
		return syscall.ENOENT, ""
	}
	c := t.chains[o.Chain]
	i := slices.IndexFunc(c.rules, func(r rule) bool { return r.handle == b.handle(o.Handle) })
	if i < 0 {
		return syscall.ENOENT, ""
	}
	c.rules = slices.Delete(c.rules, i, i+1)
	return 0, ""
}

func (b *batch) deleteSet(o kernel.DeleteSet) (syscall.Errno, string) {
	t := b.tables[o.Table]
	if t == nil || t.sets[o.Name] == nil {
		return syscall.ENOENT, ""
	}
	if t.refers(func(r *compile.Rule) []string { return r.Sets }, o.Name) {
		return syscall.EBUSY, ""
	}
	delete(t.sets, o.Name)
	return 0, ""
}

func (b *batch) addElements(o kernel.AddElements) (syscall.Errno, string) {
	t := b.tables[o.Table]
	if t == nil || t.sets[o.Set.Name] == nil {
		return syscall.ENOENT, ""
	}
	s := t.sets[o.Set.Name]
	for _, e := range o.Elements {
		id := e.Key + "\x00" + e.KeyEnd
		if old, ok := s.elements[id]; ok && old.Data != e.Data {
			return syscall.EEXIST, ""
		}
		if s.decl.Object != "" && t.objects[object.Ref{Kind: s.decl.Object, Name: e.Data}] == nil {
			return syscall.ENOENT, "object " + e.Data
		}
		if chain := target(e); s.decl.Verdict && chain != "" && t.chains[chain] == nil {
			return syscall.ENOENT, "chain " + chain
		}
		s.elements[id] = e
	}
	return 0, ""
}

func (b *batch) deleteElements(o kernel.DeleteElements) (syscall.Errno, string) {
	t := b.tables[o.Table]
	if t == nil || t.sets[o.Set.Name] == nil {
		return syscall.ENOENT, ""
	}
	s := t.sets[o.Set.Name]
	for _, e := range o.Elements {
		id := e.Key + "\x00" + e.KeyEnd
		if _, ok := s.elements[id]; !ok {
			return syscall.ENOENT, ""
		}
		delete(s.elements, id)
	}
	return 0, ""
}
