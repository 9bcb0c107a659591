package lint

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

type step struct {
	rule *eval.Rule
	// the rule's target on the way, empty for the last rule
	to string
}

// c is the rule's chain; false ends the walk
type visit func(way []step, c *eval.Chain) bool

// walk visits each chain on at most two ways.
func (l *linter) walk(b eval.BaseChain, v visit) {
	w := walker{linter: l, table: b.Table, visit: v, left: maxWalk, entered: make(map[string]int)}
	w.chain(b.Chain, nil)
}

type walker struct {
	linter  *linter
	table   *eval.Table
	visit   visit
	left    int
	entered map[string]int
}

func (w *walker) chain(c *eval.Chain, way []step) bool {
	if w.entered[c.Decl.Name]++; w.entered[c.Decl.Name] > 2 {
		return true
	}
	rules := rulesOf(c)
	for i := range rules {
		r := &rules[i]
		if w.left--; w.left < 0 {
			return false
		}
		if !w.visit(append(way[:len(way):len(way)], step{rule: r}), c) {
			return false
		}
		for _, to := range targets(w.table, r) {
			next := w.linter.chainOf(w.table, to)
			if next == nil || len(way) > maxDepth {
				continue
			}
			if !w.chain(next, append(way[:len(way):len(way)], step{r, to})) {
				return false
			}
		}
	}
	return true
}

// NFT_JUMP_STACK_SIZE
const maxDepth = 16

// ok is false without a verdict, or if a map decides.
func verdictOf(r *eval.Rule) (v set.Verdict, ok bool) {
	for _, e := range r.Exprs {
		switch k := expr.Unwrap(e).(type) {
		case *google.Verdict:
			return set.Verdict{Code: int32(k.Kind), Chain: k.Chain}, true
		case *google.Reject:
			return set.Verdict{Code: datatype.VerdictDrop}, true
		case *expr.Unknown:
			if name, _, _, isExtension := k.Extension(); isExtension && k.Name == "target" && name == "REJECT" {
				return set.Verdict{Code: datatype.VerdictDrop}, true
			}
		}
	}
	return set.Verdict{}, false
}

func targets(t *eval.Table, r *eval.Rule) []string {
	if v, ok := verdictOf(r); ok {
		if v.Chain == "" {
			return nil
		}
		return []string{v.Chain}
	}
	var out []string
	for _, e := range r.Exprs {
		lookup, ok := expr.Unwrap(e).(*google.Lookup)
		if !ok {
			continue
		}
		s, ok := t.Set(r, lookup.SetID, lookup.SetName)
		if !ok || !s.Decl.Verdict {
			continue
		}
		for _, e := range elementsOf(s) {
			if v, err := set.ParseVerdictData(e.Data); err == nil && v.Chain != "" {
				out = append(out, v.Chain)
			}
		}
	}
	return out
}

// elementsOf returns at most maxElements elements.
func elementsOf(s eval.Set) []set.Element {
	if l, ok := s.Elements.(eval.Lister); ok {
		return l.List(maxElements)
	}
	return nil
}
