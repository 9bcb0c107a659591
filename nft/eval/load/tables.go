package load

import (
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

// Tables compiles declared tables. Its rules have the handles that the kernel would give
// them if it had created only them: they count up in each table.
func Tables(tables []nft.Table) (*eval.Ruleset, error) {
	out := &eval.Ruleset{}
	for i := range tables {
		t, err := compileTable(&tables[i])
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", tables[i].ID(), err)
		}
		out.Tables = append(out.Tables, t)
	}
	return out, nil
}

// scope is a table for its rules.
type scope struct {
	table *nft.Table
	sets  map[string]*set.Set
}

func (s scope) Set(name string) (*set.Set, bool) { found, ok := s.sets[name]; return found, ok }

func (s scope) Chain(name string) bool {
	return slices.ContainsFunc(s.table.Chains, func(c nft.Chain) bool { return c.Name == name })
}

func (s scope) Object(kind nft.ObjectKind, name string) bool {
	return slices.ContainsFunc(s.table.Objects, func(o nft.Object) bool { return o.Kind == kind && o.Name == name })
}

func (s scope) Flowtable(name string) bool {
	return slices.ContainsFunc(s.table.Flowtables, func(f nft.Flowtable) bool { return f.Name == name })
}

// compileTable compiles a table.
func compileTable(t *nft.Table) (eval.Table, error) {
	out := eval.Table{ID: t.ID(), Dormant: slices.Contains(t.Flags, "dormant")}
	s := scope{table: t, sets: map[string]*set.Set{}}
	add := func(decl *set.Set, err error, elements []nft.Element) error {
		if err != nil {
			return err
		}
		indexed, err := pack(decl, elements)
		if err != nil {
			return fmt.Errorf("set %s: %w", decl.Name, err)
		}
		s.sets[decl.Name], out.Sets = decl, append(out.Sets, indexed)
		return nil
	}
	for i := range t.Sets {
		decl, err := set.Compile(t.Family, &t.Sets[i])
		if err := add(decl, err, t.Sets[i].Elements); err != nil {
			return out, err
		}
	}
	for i := range t.Maps {
		decl, err := set.CompileMap(t.Family, &t.Maps[i])
		if err := add(decl, err, t.Maps[i].Elements); err != nil {
			return out, err
		}
	}
	handle := uint64(0)
	for i := range t.Chains {
		decl, err := object.CompileChain(t.Family, &t.Chains[i])
		if err != nil {
			return out, err
		}
		chain := eval.Chain{Decl: decl}
		for _, r := range t.Chains[i].Rules {
			handle++
			chain.Rules = append(chain.Rules, compileRule(t.Family, handle, r, s))
		}
		out.Chains = append(out.Chains, chain)
	}
	return out, nil
}

// pack packs the elements of a set.
func pack(decl *set.Set, elements []nft.Element) (eval.Set, error) {
	packed := make([]set.Element, len(elements))
	for i := range elements {
		e, err := decl.Pack(elements[i])
		if err != nil {
			return eval.Set{}, err
		}
		packed[i] = e
	}
	packed, err := decl.Normalize(packed)
	return eval.NewSet(decl, packed), err
}

// compileRule compiles a rule. One that weft rejects has an unknown expression.
func compileRule(family nft.Family, handle uint64, r nft.Rule, s scope) eval.Rule {
	out := eval.Rule{Handle: handle, Text: r.Text, Comment: r.Comment}
	compiled, err := compile.CompileRule(family, r, s)
	if err != nil {
		out.Exprs = []expr.Expr{&expr.Unknown{Name: err.Error()}}
		return out
	}
	out.Text, out.Comment, out.Exprs = compiled.Text, compiled.Comment, compiled.Exprs
	out.Anonymous = eval.Anonymous(compiled.Anonymous)
	return out
}
