package findings

import (
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
)

// Ruleset joins merged tables with foreign, the tables of all programs, or nil. The merged tables replace
// weft's tables in foreign.
func Ruleset(merged []*desired.Merged, foreign *eval.Ruleset) *eval.Ruleset {
	out := &eval.Ruleset{}
	ours := make(map[nft.TableID]*desired.Merged, len(merged))
	for _, m := range merged {
		ours[m.Status.Table] = m
	}
	if foreign != nil {
		for _, t := range foreign.Tables {
			if m := ours[t.ID]; m != nil {
				delete(ours, t.ID)
				t = table(m)
			} else if t.Ours {
				continue // deleted meanwhile
			}
			out.Tables = append(out.Tables, t)
		}
	}
	for _, m := range merged {
		if ours[m.Status.Table] != nil {
			out.Tables = append(out.Tables, table(m))
		}
	}
	return out
}

func table(m *desired.Merged) eval.Table {
	t := eval.Table{ID: m.Status.Table, Ours: true, Dormant: m.Status.Dormant}
	for _, c := range m.Chains {
		chain := eval.Chain{Decl: c.Decl, Owner: first(c.Fragments)}
		for i, r := range c.Rules {
			exprs := r.Rule.Exprs
			if r.Rule.Text == "" {
				// An adopted rule is unknown until its publisher is back.
				exprs = []expr.Expr{&expr.Unknown{Name: "adopted"}}
			}
			chain.Rules = append(chain.Rules, eval.Rule{
				// Not 0: new rules have no handle yet.
				Handle: uint64(i) + 1, Text: r.Rule.Text, Comment: r.Rule.Comment, Owner: r.Owner, //nolint:gosec // an index
				Exprs: exprs, Anonymous: anonymous(r.Rule.Anonymous),
			})
		}
		t.Chains = append(t.Chains, chain)
	}
	for _, s := range m.Sets {
		t.Sets = append(t.Sets, eval.Set{Decl: s.Decl, Owner: first(s.Fragments), Elements: newElements(s.Decl, s.Elements.Len(), s.Elements.Sorted())})
	}
	return t
}

// first returns "publisher/name", or "".
func first(fragments []desired.Key) string {
	if len(fragments) == 0 {
		return ""
	}
	return fragments[0].String()
}

const maxIndexed = 4096

// errTooLarge makes the evaluation of a packet undecided.
var errTooLarge = fmt.Errorf("the set has more than %d elements", maxIndexed)

// newElements reads n elements of a set on demand.
func newElements(decl *set.Set, n int, all iter.Seq[set.Element]) eval.Finder {
	if n > maxIndexed {
		return large{}
	}
	return &elements{sync.OnceValue(func() eval.Lister {
		return eval.NewSet(decl, slices.Collect(all)).Elements.(eval.Lister) //nolint:forcetypeassert // NewSet makes one
	})}
}

func anonymous(sets []set.Anonymous) []eval.Set {
	out := make([]eval.Set, len(sets))
	for i, a := range sets {
		out[i] = eval.Set{Decl: a.Set, Elements: newElements(a.Set, len(a.Elements), slices.Values(a.Elements))}
	}
	return out
}

type large struct{}

func (large) Find(string) (set.Element, bool, error) { return set.Element{}, false, errTooLarge }

type elements struct{ all func() eval.Lister }

func (e *elements) Find(key string) (set.Element, bool, error) { return e.all().Find(key) }

func (e *elements) List(n int) []set.Element { return e.all().List(n) }
