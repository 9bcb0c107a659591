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

// Part holds a party's tables.
type Part struct {
	// as in eval.Rule
	Owner  string
	Tables []nft.Table
}

// Tables compiles and joins several parts. If the values of an element differ, the first wins.
// Handles count up in each table.
func Tables(parts ...Part) (*eval.Ruleset, error) {
	var tables []*table
	of := make(map[nft.TableID]*table)
	for _, p := range parts {
		for i := range p.Tables {
			id := p.Tables[i].ID()
			if of[id] == nil {
				of[id] = newTable(&p.Tables[i])
				tables = append(tables, of[id])
			}
			if err := of[id].declare(&p.Tables[i], p.Owner); err != nil {
				return nil, fmt.Errorf("table %s: %w", id, err)
			}
		}
	}
	// rules of the first part may refer to declarations of the last
	for _, p := range parts {
		for i := range p.Tables {
			of[p.Tables[i].ID()].compile(&p.Tables[i], p.Owner)
		}
	}
	out := &eval.Ruleset{}
	for _, t := range tables {
		out.Tables = append(out.Tables, t.out)
	}
	return out, nil
}

// table is the compile.Scope of its rules.
type table struct {
	out        eval.Table
	elements   map[*set.Set][]set.Element
	objects    map[object.Ref]bool
	flowtables map[string]bool
	handle     uint64
}

func newTable(t *nft.Table) *table {
	return &table{
		out:      eval.Table{ID: t.ID(), Dormant: slices.Contains(t.Flags, "dormant")},
		elements: map[*set.Set][]set.Element{}, objects: map[object.Ref]bool{}, flowtables: map[string]bool{},
	}
}

func (t *table) chain(name string) *eval.Chain {
	if i := slices.IndexFunc(t.out.Chains, func(c eval.Chain) bool { return c.Decl.Name == name }); i >= 0 {
		return &t.out.Chains[i]
	}
	return nil
}

func (t *table) set(name string) *eval.Set {
	if i := slices.IndexFunc(t.out.Sets, func(s eval.Set) bool { return s.Decl.Name == name }); i >= 0 {
		return &t.out.Sets[i]
	}
	return nil
}

func (t *table) Set(name string) (*set.Set, bool) {
	s := t.set(name)
	if s == nil {
		return nil, false
	}
	return s.Decl, true
}

func (t *table) Chain(name string) bool { return t.chain(name) != nil }

func (t *table) Object(kind nft.ObjectKind, name string) bool {
	return t.objects[object.Ref{Kind: kind, Name: name}]
}

func (t *table) Flowtable(name string) bool { return t.flowtables[name] }

func (t *table) declare(part *nft.Table, owner string) error {
	for _, o := range part.Objects {
		t.objects[object.Ref{Kind: o.Kind, Name: o.Name}] = true
	}
	for _, f := range part.Flowtables {
		t.flowtables[f.Name] = true
	}
	for i := range part.Sets {
		decl, err := set.Compile(part.Family, &part.Sets[i])
		if err := t.add(decl, err, part.Sets[i].Elements, owner); err != nil {
			return err
		}
	}
	for i := range part.Maps {
		decl, err := set.CompileMap(part.Family, &part.Maps[i])
		if err := t.add(decl, err, part.Maps[i].Elements, owner); err != nil {
			return err
		}
	}
	for i := range part.Chains {
		decl, err := object.CompileChain(part.Family, &part.Chains[i])
		if err != nil {
			return err
		}
		switch c := t.chain(decl.Name); {
		case c == nil:
			t.out.Chains = append(t.out.Chains, eval.Chain{Decl: decl, Owner: owner})
		case c.Decl.Base == nil:
			// the other part declared it without its hook
			c.Decl, c.Owner = decl, owner
		}
	}
	return nil
}

func (t *table) add(decl *set.Set, err error, elements []nft.Element, owner string) error {
	if err != nil {
		return err
	}
	s := t.set(decl.Name)
	if s == nil {
		t.out.Sets = append(t.out.Sets, eval.Set{Decl: decl, Owner: owner})
		s = &t.out.Sets[len(t.out.Sets)-1]
	}
	all := t.elements[s.Decl]
	there := make(map[[2]string]bool, len(all))
	for _, e := range all {
		there[[2]string{e.Key, e.KeyEnd}] = true
	}
	for i := range elements {
		e, err := s.Decl.Pack(elements[i])
		if err != nil {
			return fmt.Errorf("set %s: %w", decl.Name, err)
		}
		if !there[[2]string{e.Key, e.KeyEnd}] {
			all = append(all, e)
		}
	}
	if all, err = s.Decl.Normalize(all); err != nil {
		return fmt.Errorf("set %s: %w", decl.Name, err)
	}
	t.elements[s.Decl], s.Elements = all, eval.NewSet(s.Decl, all).Elements
	return nil
}

// A rejected rule gets an unknown expression.
func (t *table) compile(part *nft.Table, owner string) {
	for i := range part.Chains {
		c := t.chain(part.Chains[i].Name)
		for _, r := range part.Chains[i].Rules {
			t.handle++
			out := eval.Rule{Handle: t.handle, Text: r.Text, Comment: r.Comment, Owner: owner}
			if compiled, err := compile.CompileRule(part.Family, r, t); err != nil {
				out.Exprs = []expr.Expr{&expr.Unknown{Name: err.Error()}}
			} else {
				out.Text, out.Comment, out.Exprs = compiled.Text, compiled.Comment, compiled.Exprs
				out.Anonymous = eval.Anonymous(compiled.Anonymous)
			}
			c.Rules = append(c.Rules, out)
		}
	}
}
