package planner

import (
	"cmp"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Preview returns the plan of Make, with its description for some fragments. Accept and Rollback
// follow as after Make.
func Preview(s *merge.State, keys []desired.Key) *desired.Preview {
	p := &desired.Preview{Plan: Make(s), Before: map[int]desired.Before{}}
	rules := map[*merge.Chain]map[*kernel.Handle]*compile.Rule{}
	for i, op := range p.Ops {
		if b, ok := kernelBefore(s, op, rules); ok {
			p.Before[i] = b
		}
	}
	previewed := fragmentSet{}
	for _, key := range keys {
		if f, ok := s.Fragments[key]; ok && !previewed[f] {
			previewed[f] = true
			p.Shadows = appendShadows(f, p.Shadows, previewed)
		}
	}
	p.Paths = previewed.paths()
	return p
}

func (fs fragmentSet) paths() []desired.Path {
	var chains []*merge.Chain
	seen := map[*merge.Table]bool{}
	for f := range fs {
		for _, h := range f.Tables {
			if seen[h.Table] {
				continue
			}
			seen[h.Table] = true
			for _, p := range h.Table.Parts {
				if o, ok := p.(*merge.Chain); ok && o.Exists() && o.Decl().Base != nil {
					chains = append(chains, o)
				}
			}
		}
	}
	slices.SortFunc(chains, func(a, b *merge.Chain) int {
		return cmp.Or(cmp.Compare(b.Price.Worst, a.Price.Worst), merge.CompareParts(a, b))
	})
	paths := make([]desired.Path, 0, len(chains))
	for _, o := range chains[:min(len(chains), maxPaths)] {
		names := o.Path()
		paths = append(paths, desired.Path{Chain: o.At(), Hook: o.HookName(), ChainTime: o.Price.Worst, Chains: func() []string { return names }})
	}
	return paths
}

const maxPaths = 8

type fragmentSet map[*merge.Fragment]bool

func kernelBefore(s *merge.State, op kernel.Op, rules map[*merge.Chain]map[*kernel.Handle]*compile.Rule) (desired.Before, bool) {
	switch op := op.(type) {
	case kernel.DeleteRule:
		o := s.Tables[op.Table].Chain(op.Chain)
		if rules[o] == nil {
			rules[o] = map[*kernel.Handle]*compile.Rule{}
			for _, r := range o.Rules {
				rules[o][r.Handle] = r.Rule
			}
		}
		return desired.Before{Rule: rules[o][op.Handle]}, true
	case kernel.AddRule:
		o := s.Tables[op.Table].Chain(op.Chain)
		return desired.Before{Head: true}, op.After == nil && o.Kernel != nil && len(o.Rules) > 0
	case kernel.DeleteSet:
		d := kernelSet(s, op.Table, op.Name)
		return desired.Before{Set: d, Staged: d == nil}, true
	case kernel.DeleteTable:
		return desired.Before{Staged: true}, !s.Tables[op.Table].Kernel
	case kernel.FlushSet:
		return desired.Before{Set: kernelSet(s, op.Table, op.Name)}, true
	default:
		return desired.Before{}, false
	}
}

func kernelSet(s *merge.State, table nft.TableID, name string) *nftset.Set {
	d, _ := s.Tables[table].Set(name).Kernel.(*nftset.Set)
	return d
}

// appendShadows appends elements with other data than another fragment, without pairs of done
// fragments.
func appendShadows(f *merge.Fragment, all []desired.Shadow, done fragmentSet) []desired.Shadow {
	for _, h := range f.SortedHoldings() {
		for _, id := range merge.SortedObjects(h.Shares) {
			mine, ok := h.Shares[id].(*merge.SetShare)
			if !ok || !shadows(h.Table.Set(id.Name)) {
				continue
			}
			o := h.Table.Set(id.Name)
			for id := range mine.Elements.All() {
				all = appendShadow(o, all, id, mine, done)
			}
		}
	}
	return all
}

func shadows(o *merge.Set) bool {
	return slices.ContainsFunc(o.Shares, func(sh *merge.SetShare) bool { return sh.Shadowed > 0 })
}

func appendShadow(o *merge.Set, all []desired.Shadow, id string, mine *merge.SetShare, done fragmentSet) []desired.Shadow {
	w := o.Winner(id)
	for _, sh := range o.Shares {
		if w != mine && sh != mine || !sh.Elements.Differs(w.Elements, id) {
			continue
		}
		if other := w.Fragment; w == mine && done[sh.Fragment] || sh == mine && other != mine.Fragment && done[other] {
			continue
		}
		element, _ := w.Elements.Get(id)
		hidden, _ := sh.Elements.Get(id)
		all = append(all, desired.Shadow{
			Table: o.Table.ID, Decl: o.Decl(), Winner: w.Fragment.Key, Hidden: sh.Fragment.Key, Element: element, HiddenElement: hidden,
		})
	}
	return all
}
