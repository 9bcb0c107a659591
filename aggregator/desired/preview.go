package desired

import (
	"cmp"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Preview is a Plan with what is needed to describe it after a Rollback.
type Preview struct {
	*Plan
	// Before has, by the index of the op, what the kernel holds of the rule or set
	// that the op deletes or flushes, and which rules are added at the head.
	Before map[int]Before
	// Shadows are the map elements with several values of which one is a
	// previewed fragment's, in no order.
	Shadows []Shadow
	// Paths has the base chains of the tables of the previewed fragments, the most
	// expensive first. Of each ChainTime is set, and Time is not.
	Paths []Path
}

// Before is what the kernel holds before an op: the rule that is deleted, or the set
// that is deleted or flushed. For a rule that is added, only Head is set.
type Before struct {
	Rule *compile.Rule
	Set  *nftset.Set
	// Head is true for a rule that is added in front of the rules of its chain.
	Head bool
	// Staged is true for a set or table that another update brings to the kernel, and that
	// is in no committed state.
	Staged bool
}

// Shadow is a map element of which two fragments have different values.
type Shadow struct {
	Table nft.TableID
	Decl  *nftset.Set
	// Winner's value is in force. It is the zero Key if no fragment owns it.
	Winner, Hidden Key
	// Element is the winner's, HiddenElement the other's.
	Element, HiddenElement nftset.Element
}

// Preview returns the Plan, and what is needed to describe it for the given
// fragments. Accept and Rollback work in the same way after Plan and after
// Preview.
func (s *State) Preview(keys []Key) *Preview {
	p := &Preview{Plan: s.Plan(), Before: map[int]Before{}}
	rules := map[*chain]map[*kernel.Handle]*compile.Rule{}
	for i, op := range p.Ops {
		if b, ok := s.before(op, rules); ok {
			p.Before[i] = b
		}
	}
	previewed := fragmentSet{}
	for _, key := range keys {
		if f, ok := s.fragments[key]; ok && !previewed[f] {
			previewed[f] = true
			p.Shadows = f.appendShadows(p.Shadows, previewed)
		}
	}
	p.Paths = previewed.paths()
	return p
}

// paths returns the base chains of all tables in which fragments have something, the most
// expensive first.
func (fs fragmentSet) paths() []Path {
	var chains []*chain
	seen := map[*table]bool{}
	for f := range fs {
		for _, h := range f.tables {
			if seen[h.table] {
				continue
			}
			seen[h.table] = true
			for _, p := range h.table.parts {
				if o, ok := p.(*chain); ok && o.exists() && o.decl().Base != nil {
					chains = append(chains, o)
				}
			}
		}
	}
	slices.SortFunc(chains, func(a, b *chain) int { return cmp.Or(cmp.Compare(b.price.worst, a.price.worst), compareParts(a, b)) })
	paths := make([]Path, 0, len(chains))
	for _, o := range chains[:min(len(chains), maxPaths)] {
		names := o.path()
		paths = append(paths, Path{Chain: o.at(), Hook: o.hookName(), ChainTime: o.price.worst, Chains: func() []string { return names }})
	}
	return paths
}

// maxPaths bounds the paths of a Preview.
const maxPaths = 8

// fragmentSet is a set of fragments.
type fragmentSet map[*fragment]bool

// before finds the kernel's object that an op changes. rules is an index of
// chains that is filled when it is needed.
func (s *State) before(op kernel.Op, rules map[*chain]map[*kernel.Handle]*compile.Rule) (Before, bool) {
	switch op := op.(type) {
	case kernel.DeleteRule:
		o := s.tables[op.Table].chain(op.Chain)
		if rules[o] == nil {
			rules[o] = map[*kernel.Handle]*compile.Rule{}
			for _, r := range o.rules {
				rules[o][r.handle] = r.rule
			}
		}
		return Before{Rule: rules[o][op.Handle]}, true
	case kernel.AddRule:
		o := s.tables[op.Table].chain(op.Chain)
		return Before{Head: true}, op.After == nil && o.kernel != nil && len(o.rules) > 0
	case kernel.DeleteSet:
		d := s.kernelSet(op.Table, op.Name)
		return Before{Set: d, Staged: d == nil}, true
	case kernel.DeleteTable:
		return Before{Staged: true}, !s.tables[op.Table].kernel
	case kernel.FlushSet:
		return Before{Set: s.kernelSet(op.Table, op.Name)}, true
	default:
		return Before{}, false
	}
}

// kernelSet returns the declaration that the kernel has of a set.
func (s *State) kernelSet(table nft.TableID, name string) *nftset.Set {
	d, _ := s.tables[table].set(name).kernel.(*nftset.Set)
	return d
}

// appendShadows appends the elements in which the fragment disagrees with
// another. Those with the fragments that done has beside it are there already.
func (f *fragment) appendShadows(all []Shadow, done fragmentSet) []Shadow {
	for _, h := range f.holdings() {
		for _, id := range sortedObjects(h.shares) {
			mine, ok := h.shares[id].(*setShare)
			if !ok || !h.table.set(id.Name).shadows() {
				continue
			}
			o := h.table.set(id.Name)
			for id := range mine.elements.All() {
				all = o.appendShadow(all, id, mine, done)
			}
		}
	}
	return all
}

// shadows reports whether any element of the map is shadowed.
func (o *set) shadows() bool {
	return slices.ContainsFunc(o.shares, func(sh *setShare) bool { return sh.shadowed > 0 })
}

// appendShadow appends the disagreements of one share about a key.
func (o *set) appendShadow(all []Shadow, id string, mine *setShare, done fragmentSet) []Shadow {
	w := o.winner(id)
	for _, sh := range o.shares {
		if w != mine && sh != mine || !sh.elements.Differs(w.elements, id) {
			continue
		}
		if other := w.fragment; w == mine && done[sh.fragment] || sh == mine && other != mine.fragment && done[other] {
			continue
		}
		element, _ := w.elements.Get(id)
		hidden, _ := sh.elements.Get(id)
		all = append(all, Shadow{
			Table: o.table.id, Decl: o.decl(), Winner: w.fragment.key, Hidden: sh.fragment.key, Element: element, HiddenElement: hidden,
		})
	}
	return all
}
