package merge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// PartsOf returns the parts that a snapshot declares or refers to in a table, by kind and name.
// Parts of another owner need a grant. If the snapshot wants the table dormant, the first Place has
// no kind, as in [desired.Grant].
func PartsOf(tu *desired.TableUpdate) []desired.Place {
	var ids []ObjectID
	if tu.Dormant {
		ids = append(ids, ObjectID{})
	}
	for i := range tu.PutChains {
		ids = append(ids, ChainID(tu.PutChains[i].Decl.Name))
		for _, r := range tu.PutChains[i].Rules {
			ids = AppendReferences(ids, r)
		}
	}
	for i := range tu.PutSets {
		decl := tu.PutSets[i].Decl
		ids = append(ids, SetID(decl.Name))
		if !packed.HasTargets(decl) {
			continue
		}
		for _, e := range tu.PutSets[i].Elements {
			if id := LeadsTo(decl, e.Data); id.Name != "" {
				ids = append(ids, id)
			}
		}
	}
	for _, o := range tu.PutObjects {
		ids = append(ids, o.Ref())
	}
	for _, f := range tu.PutFlowtables {
		ids = append(ids, ObjectID{Kind: KindFlowtable, Name: f.Name})
	}
	var parts []desired.Place
	for _, id := range SortIDs(ids) {
		parts = append(parts, desired.Place{Table: tu.Table, Kind: string(id.Kind), Name: id.Name})
	}
	return parts
}

type reference struct {
	fragment *Fragment
	at       desired.Place
	more     int
	// slot is nil for an element; more counts further elements.
	slot   *Slot
	serial uint64
}

// references looks at the whole table: only for errors and changed declarations.
func (t *Table) references(to ObjectID) []reference {
	var refs []reference
	for _, p := range t.SortedParts() {
		switch o := p.(type) {
		case *Chain:
			for _, sh := range o.Shares {
				refs = sh.references(refs, o.At(), to)
			}
		case *Set:
			for _, sh := range o.Shares {
				if id, n := sh.leading(to); n > 0 {
					e, _ := sh.Elements.Get(id)
					at := desired.Place{Table: t.ID, Kind: "map", Name: o.ID.Name, Key: sh.Decl.FormatKey(e)}
					refs = append(refs, reference{fragment: sh.Fragment, at: at, more: n - 1})
				}
			}
		}
	}
	return refs
}

func (sh *ChainShare) references(refs []reference, at desired.Place, to ObjectID) []reference {
	if !slices.Contains(sh.Refs, to) {
		return refs
	}
	for i, r := range sh.Rules {
		if r.Adopted {
			// Adopted rules have only their common references.
			return append(refs, reference{fragment: sh.Fragment, at: at, slot: r, serial: sh.serial})
		}
		if slices.Contains(AppendReferences(nil, r.Rule), to) {
			at.Rule = i + 1
			refs = append(refs, reference{fragment: sh.Fragment, at: at, slot: r, serial: sh.serial})
		}
	}
	return refs
}

// leading returns the first and the number of the keys that lead to the part.
func (sh *SetShare) leading(to ObjectID) (first string, n int) {
	if to.Kind == KindSet || !packed.HasTargets(sh.Decl) {
		return "", 0
	}
	for id, e := range sh.Elements.All() {
		if LeadsTo(sh.Decl, e.Data) == to {
			if n == 0 || id < first {
				first = id
			}
			n++
		}
	}
	return first, n
}

func (a *Apply) checkReferences() {
	slices.SortFunc(a.s.checks, func(x, y check) int { return cmp.Or(cmp.Compare(x.rank(), y.rank()), CompareParts(x, y)) })
	for _, c := range a.s.checks {
		o, isChain := c.Part.(*Chain)
		base := isChain && o.Exists() && o.Decl().Base != nil
		if n := c.Base(); n.Refs > 0 && (base || !c.Exists()) {
			a.blame(c.At(), n.Refs, n.Table.references(n.ID), base)
		}
	}
}

func (c check) rank() int {
	switch c.Base().ID.Kind {
	case KindChain:
		return 0
	case KindSet:
		return 1
	default:
		return 2
	}
}

// blame reports references to a missing part or a base chain: the fragment's own one by one, others
// together.
func (a *Apply) blame(at desired.Place, count int, refs []reference, base bool) {
	what := at.InTable()
	reason, own, other := desired.ReasonReference, "does not exist in table "+at.Table.String()+": publish it first or with this", "is still in use"
	if base {
		reason, own, other = desired.ReasonInvalid, "is a base chain: only a chain without a hook can be jumped to", "cannot become a base chain while it is in use"
	}
	var others []reference
	for _, r := range refs {
		if r.fragment != a.F {
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

func (r *reference) others() string {
	if r.more == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", r.more)
}

const maxDependents = 4

func dependents(refs []reference) string {
	var parts []string
	for i, r := range refs {
		if i == maxDependents {
			parts = append(parts, fmt.Sprintf("and %d more", len(refs)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s%s of %s refers to it", r.at.InTable(), r.others(), r.fragment))
	}
	return strings.Join(parts, ", ")
}

// checkRedeclared finds rules that do not survive a new declaration: compiled for other types, or
// adopted and not to be added again.
func (a *Apply) checkRedeclared() {
	for _, c := range a.s.checks {
		n := c.Base()
		if c.old == nil || !c.Exists() || n.Refs <= 0 || !c.Remade(c.old) {
			continue
		}
		compatible, change := true, ""
		if o, ok := c.Part.(*Set); ok {
			old := c.old.(*nftset.Set)
			compatible, change = sameTypes(old, o.Decl()), " ("+difference(old, o.Decl())+")"
		}
		var stuck []reference
		for _, ref := range n.Table.references(n.ID) {
			if ref.slot != nil && (ref.slot.Adopted || !compatible && ref.serial != a.s.serial) {
				stuck = append(stuck, ref)
			}
		}
		if len(stuck) > 0 {
			a.violate(desired.ReasonConflict, c.At(), "declaration of %s changes%s while it is in use: %s", c.At().InTable(), change, dependents(stuck))
		}
	}
}

// sameTypes reports whether rules compiled against a hold for b.
func sameTypes(a, b *nftset.Set) bool {
	return a.Map == b.Map && a.Verdict == b.Verdict && a.Object == b.Object && a.Key.ID == b.Key.ID && a.Key.Len == b.Key.Len &&
		a.Data.ID == b.Data.ID && a.Data.Len == b.Data.Len
}

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
