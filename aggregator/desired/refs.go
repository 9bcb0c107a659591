package desired

import (
	"fmt"
	nftobject "github.com/weft-proxy/weft/nft/object"
	"slices"
	"strings"

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

// target is the object that references lead to: one of these.
type target struct {
	set, chain string
	object     objectID
}

// references finds the places that refer to a set, chain or object. It looks at
// the whole table, so it is only for errors and for changed declarations.
func (t *table) references(to target) []reference {
	var refs []reference
	for _, name := range sortedKeys(t.chains) {
		for _, sh := range t.chains[name].shares {
			refs = sh.references(refs, t.chains[name].at(), to)
		}
	}
	if to.set != "" {
		return refs
	}
	for _, name := range sortedKeys(t.sets) {
		o := t.sets[name]
		if !o.exists() || !hasTargets(o.decl()) {
			continue
		}
		for _, sh := range o.shares {
			if id, n := sh.leading(to); n > 0 {
				e, _ := sh.elements.get(id)
				at := Place{Table: t.id, Kind: "map", Name: name, Key: sh.decl.FormatKey(e)}
				refs = append(refs, reference{fragment: sh.fragment, at: at, more: n - 1})
			}
		}
	}
	return refs
}

func (sh *chainShare) references(refs []reference, at Place, to target) []reference {
	if !slices.Contains(sh.sets, to.set) && !slices.Contains(sh.chains, to.chain) && !slices.Contains(sh.objects, to.object) {
		return refs
	}
	for i, r := range sh.rules {
		if r.adopted {
			// Which of them it is, only the record of all of them tells.
			return append(refs, reference{fragment: sh.fragment, at: at, slot: r, serial: sh.serial})
		}
		if r.refersTo(to) {
			at.Rule = i + 1
			refs = append(refs, reference{fragment: sh.fragment, at: at, slot: r, serial: sh.serial})
		}
	}
	return refs
}

func (r *slot) refersTo(to target) bool {
	return slices.Contains(r.rule.Sets, to.set) || slices.Contains(r.rule.Chains, to.chain) || slices.Contains(ruleObjects(r.rule), to.object)
}

// leadsTo reports whether a map's element leads to a target.
func leadsTo(d *nftset.Set, e *nftset.Element, to target) bool {
	if to.object.Name != "" {
		return leadsToObject(d, e.Data) == to.object
	}
	return d.Verdict && verdictChain(e.Data) == to.chain
}

// leading returns the first key of a share that leads to a target, and how many do.
func (sh *setShare) leading(to target) (first string, n int) {
	for id, e := range sh.elements.all() {
		if leadsTo(sh.decl, &e, to) {
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
	slices.SortFunc(a.s.checkChains, func(x, y check[*chain, *nftobject.Chain]) int { return x.object.compare(&y.object.node) })
	slices.SortFunc(a.s.checkSets, func(x, y check[*set, *nftset.Set]) int { return x.object.compare(&y.object.node) })
	for _, c := range a.s.checkChains {
		o := c.object
		if o.refs <= 0 || o.exists() && o.decl().Base == nil {
			continue
		}
		a.blame(o.at(), o.refs, o.table.references(target{chain: o.name}), o.exists())
	}
	for _, c := range a.s.checkSets {
		o := c.object
		if o.refs > 0 && !o.exists() {
			a.blame(o.at(), o.refs, o.table.references(target{set: o.name}), false)
		}
	}
	a.checkObjects()
}

// checkObjects finds references to objects and flowtables that are not there.
func (a *apply) checkObjects() {
	slices.SortFunc(a.s.checkObjects, func(x, y check[*object, objectDecl]) int { return x.object.compare(&y.object.node) })
	for _, c := range a.s.checkObjects {
		o := c.object
		if o.refs > 0 && !o.exists() {
			a.blame(o.at(), o.refs, o.table.references(target{object: o.id}), false)
		}
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

// checkRedeclared finds rules that do not survive a new declaration of a set:
// those compiled for other types, and those that cannot be added again
// because only their handle is known.
func (a *apply) checkRedeclared() {
	for _, c := range a.s.checkSets {
		o := c.object
		if c.old == nil || !o.exists() || o.refs <= 0 || c.old == o.decl() || c.old.Equal(o.decl()) {
			continue
		}
		compatible := sameTypes(c.old, o.decl())
		var stuck []reference
		for _, ref := range o.table.references(target{set: o.name}) {
			if ref.slot.adopted || !compatible && ref.serial != a.s.serial {
				stuck = append(stuck, ref)
			}
		}
		if len(stuck) > 0 {
			a.violate(ReasonConflict, o.at(), "declaration of set %s changes (%s) while it is in use: %s",
				o.name, difference(c.old, o.decl()), dependents(stuck))
		}
	}
	for _, c := range a.s.checkChains {
		o := c.object
		if c.old != nil && o.exists() && o.refs > 0 && !updatable(c.old, o.decl()) {
			a.checkStuck(o.table, o.at(), target{chain: o.name})
		}
	}
	for _, c := range a.s.checkObjects {
		o := c.object
		if c.old.given() && o.exists() && o.refs > 0 && !c.old.equal(o.decl()) {
			a.checkStuck(o.table, o.at(), target{object: o.id})
		}
	}
}

// checkStuck reports rules that cannot be added again although they refer to an
// object that is made anew.
func (a *apply) checkStuck(t *table, at Place, to target) {
	var stuck []reference
	for _, ref := range t.references(to) {
		if ref.slot != nil && ref.slot.adopted {
			stuck = append(stuck, ref)
		}
	}
	if len(stuck) > 0 {
		a.violate(ReasonConflict, at, "declaration of %s changes while it is in use: %s", at.inTable(), dependents(stuck))
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
