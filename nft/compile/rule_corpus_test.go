package compile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/nfttest"
	"github.com/weft-proxy/weft/nft/syntax"
)

// corpus is a file of testdata/corpus: a line "family F", declarations of sets
// and maps, a line "---", and rules.
type corpus struct {
	name   string
	family nft.Family
	decls  []string
	rules  []string
	sets   map[string]*Set
}

// Set is Scope's.
func (c *corpus) Set(name string) (*Set, bool) { s, ok := c.sets[name]; return s, ok }

// Chain is Scope's: corpora have the chains a and b.
func (c *corpus) Chain(name string) bool { return name == "a" || name == "b" }

// ruleset is the corpus for nft.
func (c *corpus) ruleset() *nfttest.Ruleset {
	return &nfttest.Ruleset{Family: c.family.String(), Decls: c.decls, Chains: []string{"a", "b"}, Rules: c.rules}
}

// readCorpora reads all corpora.
func readCorpora(t testing.TB) []*corpus {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus found: %v", err)
	}
	out := make([]*corpus, 0, len(files))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, parseCorpus(t, filepath.Base(f), string(text)))
	}
	return out
}

func parseCorpus(t testing.TB, name, text string) *corpus {
	t.Helper()
	head, rules, ok := strings.Cut(text, "\n---\n")
	if !ok {
		t.Fatalf("%s: no line with ---", name)
	}
	c := &corpus{name: name, sets: map[string]*Set{}}
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		family, isFamily := strings.CutPrefix(line, "family ")
		switch {
		case line == "" || line[0] == '#':
		case isFamily:
			f, err := nft.ParseFamily(family)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			c.family = f
		default:
			c.decls = append(c.decls, line)
		}
	}
	for line := range strings.Lines(rules) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			c.rules = append(c.rules, line)
		}
	}
	c.compileDecls(t)
	return c
}

// compileDecls compiles the declarations.
func (c *corpus) compileDecls(t testing.TB) {
	t.Helper()
	tables, err := syntax.ParseFile(c.name, "table "+c.family.String()+" t {\n"+strings.Join(c.decls, "\n")+"\n}\n")
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	for _, table := range tables {
		for i := range table.Sets {
			s, err := CompileSet(c.family, &table.Sets[i])
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			c.sets[s.Name] = s
		}
		for i := range table.Maps {
			s, err := CompileMap(c.family, &table.Maps[i])
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			c.sets[s.Name] = s
		}
	}
}
