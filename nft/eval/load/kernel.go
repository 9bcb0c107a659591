package load

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

// Kernel reads all tables of the Reader's network namespace, and the rules of a chain when they
// are needed. The texts of rules are not known.
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
			t.Chains = append(t.Chains, eval.Chain{Decl: decl, Load: sync.OnceValues(func() ([]eval.Rule, error) { return rules(r, p.ID, decl.Name) })})
		}
		for _, s := range p.Sets {
			t.Sets = append(t.Sets, eval.Set{Decl: s.Decl, Elements: &elements{reader: r, table: p.ID, set: s}})
		}
		out.Tables = append(out.Tables, t)
	}
	return out, nil
}

// rules reads the rules of a chain.
func rules(r *kernel.Reader, table nft.TableID, chain string) ([]eval.Rule, error) {
	program, err := r.Rules(table, chain)
	if err != nil {
		return nil, err
	}
	out := make([]eval.Rule, len(program))
	for i, p := range program {
		out[i] = eval.Rule{Handle: p.Handle, Comment: p.Info.Comment, Owner: p.Info.Owner, Exprs: p.Exprs}
	}
	return out, nil
}

// elements asks the kernel for the elements of a set, and remembers the answers. It reads an
// anonymous set as a whole, because such sets are small.
type elements struct {
	reader *kernel.Reader
	table  nft.TableID
	set    kernel.ProgramSet
	all    *eval.Set
	known  map[string]answer
}

// answer is what Find returned.
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
