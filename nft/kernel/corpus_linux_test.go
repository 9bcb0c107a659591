package kernel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// corpus is a file of ../compile/testdata/corpus in one of its families.
type corpus struct {
	name   string
	family nft.Family
	decls  []string
	rules  []string
	scope  *declared
	// unchecked corpora need features that the running kernel may lack.
	unchecked bool
}

// readCorpora reads all corpora of package compile.
func readCorpora(t testing.TB) []*corpus {
	t.Helper()
	var out []*corpus
	for _, c := range nfttest.ReadCorpora(t, "../compile/testdata/corpus") {
		out = append(out, newCorpus(t, c))
	}
	return out
}

// newCorpus compiles the declarations of a corpus.
func newCorpus(t testing.TB, text nfttest.Corpus) *corpus {
	t.Helper()
	f, err := nft.ParseFamily(text.Family)
	if err != nil {
		t.Fatalf("%s: %v", text.Name, err)
	}
	decls := slices.DeleteFunc(slices.Clone(text.Decls), func(decl string) bool { return unusable(f, decl) })
	tables, err := ruleset.Parse(text.Name, "table "+text.Family+" t {\n"+strings.Join(decls, "\n")+"\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	c := &corpus{name: text.Name, family: f, decls: decls, rules: text.Rules, unchecked: text.Unchecked}
	if c.scope, err = declare(tables[0]); err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	return c
}

// unusable reports whether a declaration is of an object that the family does not
// support: a corpus has one list of objects for several families.
func unusable(family nft.Family, decl string) bool {
	tables, err := ruleset.Parse("", "table "+family.String()+" t {\n"+decl+"\n}\n")
	if err != nil || len(tables[0].Objects) == 0 {
		return false
	}
	_, err = object.Compile(family, &tables[0].Objects[0])
	return err != nil
}

// ruleset returns rules of the corpus for nft.
func (c *corpus) ruleset(rules []string) *nfttest.Ruleset {
	return &nfttest.Ruleset{Family: c.family.String(), Decls: c.decls, Chains: []string{"a", "b"}, Rules: rules}
}

// compiled is a rule of a corpus, with its text as given.
type compiled struct {
	text string
	rule *compile.Rule
}

// compileAll returns the rules that compile.
func (c *corpus) compileAll(rules []string) []compiled {
	var out []compiled
	for _, text := range rules {
		if rule, err := compile.CompileRule(c.family, nft.Rule{Text: text}, c.scope); err == nil {
			out = append(out, compiled{text, rule})
		}
	}
	return out
}

// chainOf returns the chain of rule number i. nfttest.Ruleset uses the same name.
func chainOf(i int) string { return fmt.Sprintf("nfttest-rule-%d", i) }

// ops returns the ops that create the table of the corpus with these rules, each in
// a chain of its own.
func (c *corpus) ops(rules []compiled) []Op {
	id := nft.TableID{Family: c.family, Name: "t"}
	ops := append(c.scope.ops(), AddChain{Table: id, Chain: chain("a")}, AddChain{Table: id, Chain: chain("b")})
	for i, r := range rules {
		ops = append(ops, AddChain{Table: id, Chain: chain(chainOf(i))}, AddRule{Table: id, Chain: chainOf(i), Rule: r.rule, Handle: &Handle{}})
	}
	return ops
}

// commitRules commits a table with the rules. It omits the rules that the kernel
// rejects, and returns them with the kernel's error.
func (c *corpus) commitRules(t testing.TB, conn *Conn, rules []compiled) (kept []compiled, refused map[string]error) {
	t.Helper()
	refused = map[string]error{}
	for {
		_, err := conn.Commit(c.ops(rules))
		if err == nil {
			return rules, refused
		}
		bad := map[*compile.Rule]bool{}
		if batch := (*BatchError)(nil); errors.As(err, &batch) {
			for _, e := range append([]*BatchError{batch}, batch.Errors...) {
				if op, ok := e.Op.(AddRule); ok {
					bad[op.Rule] = true
				}
			}
		}
		if len(bad) == 0 {
			t.Fatalf("%s: %+v", c.name, err)
		}
		var rest []compiled
		for _, r := range rules {
			if bad[r.rule] {
				refused[r.text] = err
			} else {
				rest = append(rest, r)
			}
		}
		rules = rest
	}
}

// acceptedByKernel commits the rules in a namespace of their own. It returns which of them
// the kernel accepts, and the errors for the others.
func (c *corpus) acceptedByKernel(t testing.TB, rules []compiled) (kept []compiled, refused map[string]error) {
	t.Helper()
	conn := open(t, nfttest.New(t), Config{NoOwner: true})
	return c.commitRules(t, conn, rules)
}

// tryList commits rules that the kernel accepts in a namespace of their own, and lets
// nft list them.
func (c *corpus) tryList(t testing.TB, rules []compiled) error {
	t.Helper()
	ns := nfttest.New(t)
	conn := open(t, ns, Config{NoOwner: true})
	commit(t, conn, c.ops(rules)...)
	if _, err := ns.Output("", "nft", "list", "ruleset"); err != nil {
		return err
	}
	_, err := ns.Output("", "nft", "-j", "list", "ruleset")
	return err
}

// unlistable returns the rules that nft cannot list.
func (c *corpus) unlistable(t testing.TB, rules []compiled) []compiled {
	t.Helper()
	switch {
	case len(rules) == 0 || c.tryList(t, rules) == nil:
		return nil
	case len(rules) == 1:
		return rules
	}
	half := len(rules) / 2
	return append(c.unlistable(t, rules[:half]), c.unlistable(t, rules[half:])...)
}
