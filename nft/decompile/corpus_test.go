package decompile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	google "github.com/google/nftables/expr"
	"golang.org/x/tools/txtar"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// table is a table of a corpus.
type table struct {
	declared.Sets
	name   string
	family nft.Family
	// anonymous are the sets of the rule that is decompiled.
	anonymous map[string]set.Anonymous
	rules     []nft.Rule
}

// Set is Scope's.
func (t *table) Set(name string) (*set.Set, bool) {
	if a, ok := t.anonymous[name]; ok {
		return a.Set, true
	}
	return t.Sets.Set(name)
}

// Elements is Scope's.
func (t *table) Elements(s *set.Set) ([]set.Element, error) { return t.anonymous[s.Name].Elements, nil }

// inKernel returns the expressions of a compiled rule as the kernel dumps them: anonymous sets have names.
func (t *table) inKernel(r *compile.Rule) []expr.Expr {
	t.anonymous = map[string]set.Anonymous{}
	name := func(id uint32, old string) string {
		if id == 0 {
			return old
		}
		a := r.Anonymous[id-1]
		s := *a.Set
		// The kernel has the numbers of the types alone.
		s.Key, s.Data = set.Type{ID: s.Key.ID, Len: s.Key.Len, Fields: s.Key.Fields}, set.Type{ID: s.Data.ID, Len: s.Data.Len, Fields: s.Data.Fields}
		s.Complete()
		s.Name = strings.Replace(s.Name, "%d", fmt.Sprint(id), 1)
		t.anonymous[s.Name] = set.Anonymous{Set: &s, Elements: a.Elements}
		return s.Name
	}
	var out []expr.Expr
	for _, e := range r.Exprs {
		switch x := e.(type) {
		case expr.Library:
			if l, ok := x.Any.(*google.Lookup); ok {
				c := *l
				c.SetName, c.SetID = name(c.SetID, c.SetName), 0
				e = expr.Library{Any: &c}
			}
		case *expr.Dynset:
			c := *x
			c.SetName, c.SetID = name(c.SetID, c.SetName), 0
			e = &c
		case *expr.ObjrefMap:
			c := *x
			c.SetName, c.SetID = name(c.SetID, c.SetName), 0
			e = &c
		}
		out = append(out, e)
	}
	return out
}

// root is the top of the tree.
const root = "../.."

// corpora returns the tables of all corpora in the tree.
func corpora(t testing.TB) (out []*table) {
	t.Helper()
	for _, c := range nfttest.ReadCorpora(t, root+"/nft/compile/testdata/corpus") {
		out = append(out, newCorpus(t, c))
	}
	add := func(name, text string) {
		tables, err := ruleset.Parse(name, text)
		if err != nil {
			return // package ruleset tests its errors
		}
		for i := range tables {
			d, _ := declared.Compile(tables[i]) // packages set and object test their errors
			one := &table{Sets: d.Sets, name: name, family: d.Decl.Family}
			for _, c := range d.Decl.Chains {
				one.rules = append(one.rules, c.Rules...)
			}
			out = append(out, one)
		}
	}
	nfttest.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(path, "testdata") && !strings.HasSuffix(path, ".nft") {
			return err
		}
		b, err := os.ReadFile(path)
		switch filepath.Ext(path) {
		case ".nft":
			add(path, string(b))
		case ".txtar":
			for _, f := range txtar.Parse(b).Files {
				add(path+"/"+f.Name, string(f.Data))
			}
		}
		return err
	}))
	return out
}

// newCorpus returns a corpus of package compile.
func newCorpus(t testing.TB, c nfttest.Corpus) *table {
	t.Helper()
	d := declared.Corpus(t, &c)
	one := &table{Sets: d.Sets, name: c.Name, family: d.Decl.Family}
	for _, text := range c.Rules {
		one.rules = append(one.rules, nft.Rule{Text: text})
	}
	return one
}

// content returns the bytes of a rule and its anonymous sets. The order of elements has no meaning.
func content(r *compile.Rule) string {
	exprs, _ := (&decompiler{scope: &table{}}).canonical(r.Exprs)
	b := nfttest.Must(expr.Encode(exprs))
	text := fmt.Sprintf("%x\n", b.Bytes)
	for _, e := range exprs {
		text += expr.Format(e) + "\n"
	}
	for _, a := range r.Anonymous {
		elements := slices.SortedFunc(slices.Values(a.Elements), func(a, b set.Element) int { return cmp.Compare(a.Key, b.Key) })
		text += fmt.Sprintf("%s %x %d %d %q\n", a.Set.Name, a.Set.Flags, a.Set.Key.Len, a.Set.Data.Len, elements)
	}
	return text
}

// singles reports whether a rule has an anonymous set of one element: its text means a comparison to nft.
func singles(r *compile.Rule) bool {
	return slices.ContainsFunc(r.Anonymous, func(a set.Anonymous) bool { return len(a.Elements) == 1 && !a.Set.Map })
}

// tally counts results by their reasons.
type tally map[string][]string

// count returns how many results there are.
func (c tally) count() (n int) {
	for _, texts := range c {
		n += len(texts)
	}
	return n
}

func (c tally) log(t testing.TB) {
	for _, reason := range slices.SortedFunc(maps.Keys(c), func(a, b string) int { return cmp.Compare(len(c[b]), len(c[a])) }) {
		t.Logf("%5d  %s, such as: %s", len(c[reason]), reason, c[reason][0])
	}
}

// reason returns the kind of a fallback.
func reason(err error) string {
	text := err.Error()
	kind, rest, _ := strings.Cut(text, ": ")
	rest, _, _ = strings.Cut(rest, ": ")
	return kind + ": " + rest
}

// TestRoundTrip compiles every rule of every corpus in the tree, decompiles it and compiles it again: the bytes
// are the same. It prints the share that falls back to a handle, by the reasons. The share that nft lists with
// the same words is printed by TestListing:
//
//	.ci/netadmin go test -count=1 -v -run 'TestRoundTrip|TestListing' ./nft/decompile
func TestRoundTrip(t *testing.T) {
	rules, single, fell := 0, 0, tally{}
	for _, c := range corpora(t) {
		for _, r := range c.rules {
			rule, err := compile.CompileRule(c.family, r, c)
			if err != nil {
				continue // package compile tests its errors
			}
			rules++
			exprs := c.inKernel(rule)
			tree, err := Rule(c.family, exprs, c)
			if err != nil {
				if !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("%s: %s: %v, want errors.ErrUnsupported", c.name, rule.Text, err)
				}
				fell[reason(err)] = append(fell[reason(err)], rule.Text+" ("+c.name+")\n\t\t"+err.Error())
				continue
			}
			again, err := compile.CompileRule(c.family, nft.Rule{Text: syntax.Print(tree), Comment: rule.Comment}, known{c})
			if err != nil {
				t.Errorf("%s: %s\ndecompiled: %s\n%v", c.name, rule.Text, syntax.Print(tree), err)
			} else if got, want := content(again), content(rule); got != want && !singles(rule) {
				t.Errorf("%s: %s\ndecompiled: %s\n%s\nwant\n%s", c.name, rule.Text, syntax.Print(tree), got, want)
			} else if got != want {
				single++
			}
		}
	}
	n := fell.count()
	t.Logf("%d rules: %d fall back to a handle (%.2f %%); %d have a set of one element, which nft reads as a comparison",
		rules, n, 100*float64(n)/float64(rules), single)
	fell.log(t)
	if rules < 10_000 || n > rules/50 {
		t.Errorf("%d of %d rules fall back to a handle, want 2 %% at most of 10,000 rules", n, rules)
	}
}
