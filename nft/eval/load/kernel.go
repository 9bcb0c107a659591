package load

import (
	"cmp"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/decompile"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Kernel reads all tables of the Reader's network namespace, and rules on demand.
func Kernel(r *kernel.Reader) (*eval.Ruleset, error) {
	programs, err := r.Programs()
	if err != nil {
		return nil, err
	}
	out := &eval.Ruleset{}
	for i := range programs {
		p := &programs[i]
		t := eval.Table{ID: p.ID, Ours: p.Ours, Dormant: p.Dormant}
		for _, decl := range p.Chains {
			t.Chains = append(t.Chains, eval.Chain{Decl: decl, Load: sync.OnceValues(func() ([]eval.Rule, error) { return rules(r, p, decl.Name) })})
		}
		for _, s := range p.Sets {
			t.Sets = append(t.Sets, eval.Set{Decl: s.Decl, Elements: &elements{reader: r, table: p.ID, set: s}})
		}
		out.Tables = append(out.Tables, t)
	}
	return out, nil
}

func rules(r *kernel.Reader, p *kernel.Program, chain string) ([]eval.Rule, error) {
	program, err := r.Rules(p.ID, chain)
	if err != nil {
		return nil, err
	}
	out := make([]eval.Rule, len(program))
	for i, rule := range program {
		words := sync.OnceValue(func() string {
			tree, err := decompile.Rule(p.ID.Family, rule.Exprs, sets{r, p})
			if err != nil {
				return ""
			}
			return syntax.Print(tree)
		})
		out[i] = eval.Rule{Handle: rule.Handle, Words: words, Comment: cmp.Or(rule.Info.Comment, decompile.Comment(rule.Exprs)), Owner: rule.Info.Owner, Exprs: rule.Exprs}
	}
	return out, nil
}

// a decompile.Scope
type sets struct {
	reader  *kernel.Reader
	program *kernel.Program
}

func (s sets) Set(name string) (*set.Set, bool) {
	for i := range s.program.Sets {
		if p := &s.program.Sets[i]; p.Decl.Name == name && p.Err == nil {
			return p.Decl, true
		}
	}
	return nil, false
}

func (s sets) Elements(decl *set.Set) ([]set.Element, error) {
	return s.reader.Elements(s.program.ID, decl)
}

// elements caches the kernel's answers. Anonymous sets are small, and read as a whole.
type elements struct {
	reader *kernel.Reader
	table  nft.TableID
	set    kernel.ProgramSet
	all    *eval.Set
	known  map[string]answer
}

type answer struct {
	element set.Element
	ok      bool
}

// Find implements eval.Finder.
func (e *elements) Find(key string) (set.Element, bool, error) {
	switch {
	case e.set.Err != nil:
		return set.Element{}, false, e.set.Err
	case e.set.Decl.Flags&unix.NFT_SET_ANONYMOUS != 0 && e.all == nil:
		all, err := e.reader.Elements(e.table, e.set.Decl)
		if err != nil {
			return set.Element{}, false, err
		}
		indexed := eval.NewSet(e.set.Decl, all)
		e.all = &indexed
	}
	if e.all != nil {
		return e.all.Elements.Find(key)
	}
	if a, ok := e.known[key]; ok {
		return a.element, a.ok, nil
	}
	found, ok, err := e.reader.Element(e.table, e.set.Decl, key)
	if err != nil {
		return found, ok, err
	}
	if e.known == nil {
		e.known = map[string]answer{}
	}
	e.known[key] = answer{found, ok}
	return found, ok, nil
}
