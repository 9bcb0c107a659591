package check

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/json"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// File is a file to check.
type File struct {
	Name string
	Text string
	// Context is for a file of which only the declarations count.
	Context bool
	// Open reads included files. It may be nil.
	Open ruleset.OpenFunc
}

// Problem is an error of a file.
type Problem struct {
	// Err.File is set for an included file.
	File string
	// Err has the place and the source line if known.
	Err *syntax.Error
}

// String returns "FILE:LINE:COL: message", with the source line and a caret.
func (p Problem) String() string {
	if p.Err.File != "" {
		p.File = p.Err.File
	}
	if !p.Err.Pos.IsValid() {
		return p.File + ": " + p.Err.Msg
	}
	return p.File + ":" + p.Err.Pos.String() + ": " + p.Err.Msg + "\n" + p.Err.Excerpt()
}

// Result is the result of a check.
type Result struct {
	// by file and place
	Problems []Problem
	// Counts of compiled objects outside context files. Sets include maps, Objects flowtables. A
	// set in two files counts twice, a table once.
	Tables, Rules, Sets, Elements, Objects int

	tables []*table
	units  []*unit
}

// Run checks files in nft's syntax or JSON.
func Run(files []File) *Result {
	c := &checker{scopes: map[nft.TableID]*scope{}}
	units := make([]*unit, len(files))
	for i := range files {
		units[i] = c.read(&files[i])
	}
	// Rules of the first file may refer to declarations of the last.
	for _, u := range units {
		c.declare(u)
	}
	for _, u := range units {
		c.compile(u)
	}
	c.out.units = units
	for _, u := range units {
		c.out.Problems = append(c.out.Problems, u.sorted()...)
	}
	return &c.out
}

type checker struct {
	scopes map[nft.TableID]*scope
	out    Result
	// partial is for an incompletely read file, which may declare any name.
	partial bool
}

type unit struct {
	*File
	parsed []nft.Table
	tables []*table
	places *ruleset.Positions
	// nil without File.Open
	bundle *ruleset.Bundle
	errs   []*syntax.Error
}

// table is the part of a table in one file.
type table struct {
	id     nft.TableID
	sets   []setContent
	chains []chainContent
}

type setContent struct {
	decl     *set.Set
	elements []set.Element
}

type chainContent struct {
	name  string
	rules []*compile.Rule
}

func (u *unit) fail(err *syntax.Error) { u.errs = append(u.errs, err) }

// declared reports whether a declaration compiled, and notes err. The parser has reported a faulty
// one.
func (u *unit) declared(id ruleset.DeclarationID, err error) bool {
	if u.places.Faulty(id) {
		return false
	}
	if err != nil {
		u.fail(u.places.Error(id, err.Error()))
	}
	return err == nil
}

func (u *unit) sorted() []Problem {
	slices.SortStableFunc(u.errs, func(a, b *syntax.Error) int { return a.Pos.Compare(b.Pos) })
	out := make([]Problem, len(u.errs))
	for i, err := range u.errs {
		if u.bundle != nil && err.Pos.IsValid() {
			err.File, err.Pos, err.Line = u.bundle.Place(err.Pos)
		}
		out[i] = Problem{u.Name, err}
	}
	return out
}

func (c *checker) read(f *File) *unit {
	u := &unit{File: f}
	text, err := f.Text, error(nil)
	if f.Open != nil {
		if u.bundle, err = ruleset.Include(f.Name, text, f.Open); err == nil {
			text = u.bundle.Text
		}
	}
	if err == nil {
		u.parsed, u.places, err = json.ParsePositions("", text)
	}
	c.partial = c.partial || err != nil && (u.places == nil || !u.places.Complete())
	if list := (*ruleset.ErrorList)(nil); errors.As(err, &list) {
		u.errs = list.Errors
	}
	for i := range u.parsed {
		t := &u.parsed[i]
		u.tables = append(u.tables, &table{id: t.ID()})
		s := c.scopes[t.ID()]
		if s == nil {
			s = newScope(t.ID())
			s.partial = &c.partial
			c.scopes[t.ID()] = s
		}
		if !u.Context && !s.counted {
			s.counted = true
			c.out.Tables++
		}
		s.files = append(s.files, u)
	}
	return u
}

func (c *checker) declare(u *unit) {
	for i := range u.parsed {
		t, out := &u.parsed[i], u.tables[i]
		s := c.scopes[t.ID()]
		c.objects(u, t, s)
		for j := range t.Sets {
			set, err := set.Compile(t.Family, &t.Sets[j])
			c.set(u, out, s, &t.Sets[j], set, err)
		}
		for j := range t.Maps {
			set, err := set.CompileMap(t.Family, &t.Maps[j])
			c.set(u, out, s, (*nft.Set)(&t.Maps[j]), set, err)
		}
		for j := range t.Chains {
			c.chain(u, t, s, &t.Chains[j])
		}
	}
}

func (c *checker) objects(u *unit, t *nft.Table, s *scope) {
	declared := func(kind, name string, err error) bool {
		ok := u.declared(ruleset.DeclarationID{Table: t.ID(), Kind: kind, Name: name}, err)
		if ok && !u.Context {
			c.out.Objects++
		}
		return ok
	}
	for i := range t.Objects {
		o := &t.Objects[i]
		if _, err := object.Compile(t.Family, o); declared(string(o.Kind), o.Name, err) {
			s.objects[object.Ref{Kind: o.Kind, Name: o.Name}] = true
		}
	}
	for i := range t.Flowtables {
		f := &t.Flowtables[i]
		if _, err := object.CompileFlowtable(f); declared("flowtable", f.Name, err) {
			s.flowtables[f.Name] = true
		}
	}
}

func (c *checker) chain(u *unit, t *nft.Table, s *scope, decl *nft.Chain) {
	id := ruleset.DeclarationID{Table: t.ID(), Kind: "chain", Name: decl.Name}
	chain, err := object.CompileChain(t.Family, decl)
	if !u.declared(id, err) {
		return
	}
	old := s.chains[decl.Name]
	if old != nil && old.Base != nil && chain.Base != nil && *old.Base != *chain.Base {
		u.fail(u.places.Error(id, fmt.Sprintf("chain %s is declared differently in %s", decl.Name, s.first(id, u))))
	}
	if old == nil || old.Base == nil {
		s.chains[decl.Name] = chain
	}
}

// set adds a set with packed elements to out, or reports the error.
func (c *checker) set(u *unit, out *table, s *scope, decl *nft.Set, declared *set.Set, err error) {
	id := ruleset.DeclarationID{Table: out.id, Kind: "set", Name: decl.Name}
	if !u.declared(id, err) {
		return
	}
	if old := s.sets[decl.Name]; old == nil {
		s.sets[decl.Name] = declared
	} else if !old.Equal(declared) {
		u.fail(u.places.Error(id, fmt.Sprintf("set %s is declared differently in %s", decl.Name, s.first(id, u))))
		return
	}
	if u.Context {
		return
	}
	c.out.Sets++
	content := setContent{decl: declared, elements: make([]set.Element, 0, len(decl.Elements))}
	for i := range decl.Elements {
		e, err := declared.Pack(decl.Elements[i])
		if err != nil {
			u.fail(u.places.ElementError(id, i, err.Error()))
			continue
		}
		content.elements = append(content.elements, e)
	}
	c.out.Elements += len(content.elements)
	if _, err := declared.Normalize(content.elements); err != nil {
		u.fail(u.places.Error(id, err.Error()))
		return
	}
	out.sets = append(out.sets, content)
}

func (c *checker) compile(u *unit) {
	if u.Context {
		return
	}
	for i := range u.parsed {
		t, out := &u.parsed[i], u.tables[i]
		s := c.scopes[t.ID()]
		for j := range out.sets {
			checkVerdicts(u, s, &out.sets[j])
		}
		for j := range t.Chains {
			out.chains = append(out.chains, c.rules(u, s, &t.Chains[j]))
		}
		c.out.tables = append(c.out.tables, out)
	}
}

// checkVerdicts reports each element whose verdict names an unknown chain.
func checkVerdicts(u *unit, s *scope, declared *setContent) {
	if !declared.decl.Verdict {
		return
	}
	id := ruleset.DeclarationID{Table: s.id, Kind: "set", Name: declared.decl.Name}
	for i, e := range declared.elements {
		v, err := set.ParseVerdictData(e.Data)
		s.incomplete = false
		if err == nil && v.Chain != "" && !s.Chain(v.Chain) && !s.incomplete {
			u.fail(u.places.ElementError(id, i, fmt.Sprintf("unknown chain %q", v.Chain)))
		}
	}
}

func (c *checker) rules(u *unit, s *scope, chain *nft.Chain) chainContent {
	out := chainContent{name: chain.Name}
	for i, r := range chain.Rules {
		s.incomplete = false
		rule, err := compile.CompileRule(s.id.Family, r, s)
		switch {
		case err == nil:
			c.out.Rules++
			out.rules = append(out.rules, rule)
		case !s.incomplete:
			u.fail(ruleError(u, s, chain.Name, i, r, err))
		}
	}
	return out
}

// ruleError compiles the rule's text in the file again, because the canonical form has other
// columns.
func ruleError(u *unit, s *scope, chain string, n int, r nft.Rule, err error) *syntax.Error {
	at := (*syntax.Error)(nil)
	if src, ok := u.places.Rule(s.id, chain, n); ok {
		_, again := compile.CompileRule(s.id.Family, nft.Rule{Text: src.Text}, s)
		if errors.As(again, &at) {
			return src.Error(at)
		}
	}
	where := fmt.Sprintf("table %s chain %s rule %d %q", s.id, chain, n+1, r.Text)
	if errors.As(err, &at) {
		return &syntax.Error{Msg: fmt.Sprintf("%s: %s\n%s", where, at.Error(), at.Excerpt())}
	}
	return &syntax.Error{Msg: fmt.Sprintf("%s: %s", where, err)}
}
