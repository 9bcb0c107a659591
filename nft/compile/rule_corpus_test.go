package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// corpus is a file of testdata/corpus in one family, with its declarations compiled.
type corpus struct {
	name    string
	family  nft.Family
	decls   []string
	rules   []string
	sets    map[string]*set.Set
	objects []object.Ref
	// unchecked corpora need features that the running kernel may lack.
	unchecked bool
}

// Set is Scope's.
func (c *corpus) Set(name string) (*set.Set, bool) { s, ok := c.sets[name]; return s, ok }

// Chain is Scope's: corpora have the chains a and b.
func (c *corpus) Chain(name string) bool { return name == "a" || name == "b" }

// Object is Scope's.
func (c *corpus) Object(kind nft.ObjectKind, name string) bool {
	return slices.Contains(c.objects, object.Ref{Kind: kind, Name: name})
}

// Flowtable is Scope's: corpora have the flowtable f, which nft does not look for.
func (c *corpus) Flowtable(name string) bool { return name == "f" }

// ruleset is the corpus for nft.
func (c *corpus) ruleset() *nfttest.Ruleset {
	return &nfttest.Ruleset{Family: c.family.String(), Decls: c.decls, Chains: []string{"a", "b"}, Rules: c.rules, Unchecked: c.unchecked}
}

// readCorpora reads all corpora.
func readCorpora(t testing.TB) []*corpus {
	t.Helper()
	var out []*corpus
	for _, c := range nfttest.ReadCorpora(t, "testdata/corpus") {
		out = append(out, newCorpus(t, c))
	}
	return out
}

// newCorpus compiles the declarations of a corpus.
func newCorpus(t testing.TB, text nfttest.Corpus) *corpus {
	t.Helper()
	family, err := nft.ParseFamily(text.Family)
	if err != nil {
		t.Fatalf("%s: %v", text.Name, err)
	}
	c := &corpus{name: text.Name, family: family, decls: text.Decls, rules: text.Rules, sets: map[string]*set.Set{}, unchecked: text.Unchecked}
	c.compileDecls(t)
	return c
}

// compileDecls compiles the declarations.
func (c *corpus) compileDecls(t testing.TB) {
	t.Helper()
	var decls []string
	for _, d := range c.decls {
		if ref, ok := objectRef(d); ok {
			c.objects = append(c.objects, ref)
		} else {
			decls = append(decls, d)
		}
	}
	tables, err := ruleset.Parse(c.name, "table "+c.family.String()+" t {\n"+strings.Join(decls, "\n")+"\n}\n")
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	for _, table := range tables {
		for i := range table.Sets {
			s, err := set.Compile(c.family, &table.Sets[i])
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			c.sets[s.Name] = s
		}
		for i := range table.Maps {
			s, err := set.CompileMap(c.family, &table.Maps[i])
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			c.sets[s.Name] = s
		}
	}
}

// objectRef returns the object that a line declares.
func objectRef(decl string) (object.Ref, bool) {
	for _, kind := range nft.ObjectKinds {
		if rest, ok := strings.CutPrefix(decl, string(kind)+" "); ok {
			return object.Ref{Kind: kind, Name: strings.Fields(rest)[0]}, true
		}
	}
	return object.Ref{}, false
}
