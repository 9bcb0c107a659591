package desired

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// reference is one place that refers to an object.
type reference struct {
	fragment *fragment
	at       Place
	// more is the number of further elements of the map that refer to the object.
	more int
	// slot is nil for an element.
	slot *slot
	// serial is the number of the change that brought the rule.
	serial uint64
}

// references finds the places that refer to a part of the table. It looks at
// the whole table, so it is only for errors and for changed declarations.
func (t *table) references(to objectID) []reference {
	var refs []reference
	for _, p := range t.sortedParts() {
		switch o := p.(type) {
		case *chain:
			for _, sh := range o.shares {
				refs = sh.references(refs, o.at(), to)
			}
		case *set:
			for _, sh := range o.shares {
				if id, n := sh.leading(to); n > 0 {
					e, _ := sh.elements.Get(id)
					at := Place{Table: t.id, Kind: "map", Name: o.id.Name, Key: sh.decl.FormatKey(e)}
					refs = append(refs, reference{fragment: sh.fragment, at: at, more: n - 1})
				}
			}
		}
	}
	return refs
}

func (sh *chainShare) references(refs []reference, at Place, to objectID) []reference {
	if !slices.Contains(sh.refs, to) {
		return refs
	}
	for i, r := range sh.rules {
		if r.adopted {
			// It is not known to which parts each adopted rule refers, only to which they
			// all refer.
			return append(refs, reference{fragment: sh.fragment, at: at, slot: r, serial: sh.serial})
		}
		if slices.Contains(appendReferences(nil, r.rule), to) {
			at.Rule = i + 1
			refs = append(refs, reference{fragment: sh.fragment, at: at, slot: r, serial: sh.serial})
		}
	}
	return refs
}

// leading returns the first key of a share that leads to a part, and how many do.
func (sh *setShare) leading(to objectID) (first string, n int) {
	if to.Kind == kindSet || !packed.HasTargets(sh.decl) {
		return "", 0
	}
	for id, e := range sh.elements.All() {
		if leadsTo(sh.decl, e.Data) == to {
			if n == 0 || id < first {
				first = id
			}
			n++
		}
	}
	return first, n
}

// checkReferences finds references that the change would leave without a
// target.
func (a *apply) checkReferences() {
	slices.SortFunc(a.s.checks, func(x, y check) int { return cmp.Or(cmp.Compare(x.rank(), y.rank()), compareParts(x, y)) })
	for _, c := range a.s.checks {
		o, isChain := c.part.(*chain)
		base := isChain && o.exists() && o.decl().Base != nil
		if n := c.base(); n.refs > 0 && (base || !c.exists()) {
			a.blame(c.at(), n.refs, n.table.references(n.id), base)
		}
	}
}

// rank has violations name chains first, then sets, then objects.
func (c check) rank() int {
	switch c.base().id.Kind {
	case kindChain:
		return 0
	case kindSet:
		return 1
	default:
		return 2
	}
}

// blame reports references to an object that does not exist, or that is a base
// chain: the fragment's own references one by one, those of other fragments
// together.
func (a *apply) blame(at Place, count int, refs []reference, base bool) {
	what := at.inTable()
	reason, own, other := ReasonReference, "does not exist in table "+at.Table.String()+": publish it first or with this", "is still in use"
	if base {
		reason, own, other = ReasonInvalid, "is a base chain: only a chain without a hook can be jumped to", "cannot become a base chain while it is in use"
	}
	var others []reference
	for _, r := range refs {
		if r.fragment != a.f {
			others = append(others, r)
			continue
		}
		a.violate(reason, r.at, "refers to %s, which %s%s", what, own, r.others())
	}
	if len(others) > 0 {
		a.violate(reason, at, "%s %s: %s", what, other, dependents(others))
	}
	if len(refs) == 0 {
		a.violate(reason, at, "%s %s: %d objects refer to it", what, other, count)
	}
}

// others says how many further elements of the same map refer to the object.
func (r *reference) others() string {
	if r.more == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", r.more)
}

// maxDependents bounds how many references a message names.
const maxDependents = 4

// dependents names references: "chain a rule 1 of fragment p/f, ...".
func dependents(refs []reference) string {
	var parts []string
	for i, r := range refs {
		if i == maxDependents {
			parts = append(parts, fmt.Sprintf("and %d more", len(refs)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s%s of %s refers to it", r.at.inTable(), r.others(), r.fragment))
	}
	return strings.Join(parts, ", ")
}

// checkRedeclared finds rules that do not survive a new declaration of what they
// refer to: those compiled against a set of other types, and those that cannot be
// added again because only their handle is known.
func (a *apply) checkRedeclared() {
	for _, c := range a.s.checks {
		n := c.base()
		if c.old == nil || !c.exists() || n.refs <= 0 || !c.remade(c.old) {
			continue
		}
		compatible, change := true, ""
		if o, ok := c.part.(*set); ok {
			old := c.old.(*nftset.Set)
			compatible, change = sameTypes(old, o.decl()), " ("+difference(old, o.decl())+")"
		}
		var stuck []reference
		for _, ref := range n.table.references(n.id) {
			if ref.slot != nil && (ref.slot.adopted || !compatible && ref.serial != a.s.serial) {
				stuck = append(stuck, ref)
			}
		}
		if len(stuck) > 0 {
			a.violate(ReasonConflict, c.at(), "declaration of %s changes%s while it is in use: %s", c.at().inTable(), change, dependents(stuck))
		}
	}
}

// sameTypes reports whether rules that were compiled against a hold for b.
func sameTypes(a, b *nftset.Set) bool {
	return a.Map == b.Map && a.Verdict == b.Verdict && a.Object == b.Object && a.Key.ID == b.Key.ID && a.Key.Len == b.Key.Len &&
		a.Data.ID == b.Data.ID && a.Data.Len == b.Data.Len
}

// difference says in words how two declarations of a set differ.
func difference(a, b *nftset.Set) string {
	var parts []string
	add := func(differs bool, what string, x, y any) {
		if differs {
			parts = append(parts, fmt.Sprintf("%s %v, not %v", what, x, y))
		}
	}
	add(a.Map != b.Map, "map", a.Map, b.Map)
	add(a.Key.ID != b.Key.ID || a.Key.Len != b.Key.Len, "key type", typeName(a.Key), typeName(b.Key))
	add(a.Verdict != b.Verdict || a.Data.ID != b.Data.ID || a.Data.Len != b.Data.Len, "data type", typeName(a.Data), typeName(b.Data))
	add(a.Object != b.Object, "objects", a.Object, b.Object)
	add(a.Flags != b.Flags, "flags", fmt.Sprintf("%#x", a.Flags), fmt.Sprintf("%#x", b.Flags))
	add(a.Timeout != b.Timeout, "timeout", a.Timeout, b.Timeout)
	add(a.GCInterval != b.GCInterval, "gc-interval", a.GCInterval, b.GCInterval)
	add(a.Size != b.Size, "size", a.Size, b.Size)
	add(a.Memory != b.Memory, "policy memory", a.Memory, b.Memory)
	add(a.Comment != b.Comment, "comment", fmt.Sprintf("%q", a.Comment), fmt.Sprintf("%q", b.Comment))
	if len(parts) == 0 {
		return "types are written differently"
	}
	return strings.Join(parts, ", ")
}

func typeName(t nftset.Type) string {
	if len(t.Names) == 0 {
		return fmt.Sprintf("type %d", t.ID)
	}
	return strings.Join(t.Names, " . ")
}
