package explain

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

// readKernel returns the rules of all programs. The elements of sets are read when a rule looks
// them up, so the ruleset is valid until it is closed.
func readKernel() (rules *eval.Ruleset, closeRules func(), err error) {
	r, err := kernel.OpenReader(kernel.Config{})
	if err != nil {
		return nil, nil, err
	}
	programs, err := r.Programs()
	if err != nil {
		_ = r.Close()
		return nil, nil, err
	}
	rules = &eval.Ruleset{}
	for i := range programs {
		rules.Tables = append(rules.Tables, tableOf(r, &programs[i]))
	}
	return rules, func() { _ = r.Close() }, nil
}

// tableOf returns a table as the evaluator needs it.
func tableOf(r *kernel.Reader, p *kernel.Program) eval.Table {
	t := eval.Table{ID: p.ID, Dormant: p.Dormant}
	for _, c := range p.Chains {
		chain := eval.Chain{Decl: c.Decl}
		for _, x := range c.Rules {
			chain.Rules = append(chain.Rules, eval.Rule{Handle: x.Handle, Comment: x.Info.Comment, Owner: x.Info.Owner, Exprs: x.Exprs})
		}
		t.Chains = append(t.Chains, chain)
	}
	for _, s := range p.Sets {
		t.Sets = append(t.Sets, eval.Set{Decl: s.Decl, Elements: &kernelSet{r, p.ID, s.Decl, s.Err}})
	}
	return t
}

// kernelSet finds elements in the kernel. It implements eval.Finder.
type kernelSet struct {
	reader *kernel.Reader
	table  nft.TableID
	decl   *set.Set
	// err is why the set cannot be read.
	err error
}

// Find implements eval.Finder.
func (s *kernelSet) Find(key string) (e set.Element, ok bool, err error) {
	if s.err != nil {
		return set.Element{}, false, s.err
	}
	return s.reader.Element(s.table, s.decl, key)
}
