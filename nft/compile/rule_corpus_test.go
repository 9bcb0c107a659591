package compile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/nfttest"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
)

// corpus is a file of testdata/corpus in one family: a line "family F...", perhaps a
// line "unchecked" (see nfttest.Ruleset), declarations of sets, maps and objects, a
// line "---", and rules.
type corpus struct {
	name    string
	family  nft.Family
	decls   []string
	rules   []string
	sets    map[string]*set.Set
	objects []object.Ref
	// unchecked corpora need what the running kernel may lack.
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
		out = append(out, parseCorpus(t, filepath.Base(f), string(text))...)
	}
	return out
}

// parseCorpus reads a file and returns its corpus in each of its families.
func parseCorpus(t testing.TB, name, text string) []*corpus {
	t.Helper()
	head, body, ok := strings.Cut(text, "\n---\n")
	if !ok {
		t.Fatalf("%s: no line with ---", name)
	}
	var families, decls, rules []string
	unchecked := false
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		words, isFamily := strings.CutPrefix(line, "family ")
		switch {
		case line == "" || line[0] == '#':
		case isFamily:
			families = strings.Fields(words)
		case line == "unchecked":
			unchecked = true
		default:
			decls = append(decls, line)
		}
	}
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			rules = append(rules, line)
		}
	}
	out := make([]*corpus, len(families))
	for i, word := range families {
		family, err := nft.ParseFamily(word)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[i] = &corpus{name: name + "/" + word, family: family, decls: decls, rules: rules, sets: map[string]*set.Set{}, unchecked: unchecked}
		out[i].compileDecls(t)
	}
	return out
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
