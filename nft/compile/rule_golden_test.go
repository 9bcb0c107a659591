package compile

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/declared"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden compiles the rules of testdata/*.txtar. A section "scope" has a
// corpus' head and holds for all rules after it; a section "rule" is followed
// by "expr" with the expressions in libnftnl's notation, or by "error" with the
// error and the excerpt.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden file found: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive := nfttest.Must(txtar.ParseFile(file))
			got := golden(t, filepath.Base(file), archive)
			if *update {
				nfttest.NoError(t, os.WriteFile(file, txtar.Format(got), 0o644))
				return
			}
			if got, want := string(txtar.Format(got)), string(txtar.Format(archive)); got != want {
				t.Errorf("golden differs (run with -update and look at the difference):\n--- want\n%s\n+++ got\n%s", want, got)
			}
		})
	}
}

// golden returns the archive with the results as they are.
func golden(t *testing.T, name string, in *txtar.Archive) *txtar.Archive {
	t.Helper()
	out := &txtar.Archive{Comment: in.Comment}
	scope := newCorpus(t, nfttest.ParseCorpus(t, name, "family ip\n---\n")[0])
	rules := 0
	for _, f := range in.Files {
		switch f.Name {
		case "scope":
			scope = newCorpus(t, nfttest.ParseCorpus(t, name, string(f.Data)+"\n---\n")[0])
			out.Files = append(out.Files, f)
		case "rule":
			rules++
			out.Files = append(out.Files, f, result(t, scope, strings.TrimSuffix(string(f.Data), "\n")))
		case "expr", "error":
		default:
			t.Fatalf("unknown section %q", f.Name)
		}
	}
	if rules == 0 {
		t.Fatal("no rule in the file")
	}
	return out
}

// result compiles one rule.
func result(t *testing.T, c *corpus, text string) txtar.File {
	t.Helper()
	rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
	if err == nil {
		return txtar.File{Name: "expr", Data: []byte(rule.DumpSets() + rule.Dump())}
	}
	var e *syntax.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: error has no place: %v", text, err)
	}
	if rule != nil {
		t.Errorf("%s: both a rule and an error", text)
	}
	return txtar.File{Name: "error", Data: []byte(e.Error() + "\n" + e.Excerpt() + "\n")}
}

// corpus is a file of testdata/corpus in one family. As a scope it has the chains a and b, and the flowtable f, which
// nft does not look for.
type corpus struct {
	nfttest.Corpus
	*declared.Table
	family nft.Family
}

func (c *corpus) Chain(name string) bool { return name == "a" || name == "b" }

func (c *corpus) Flowtable(name string) bool { return name == "f" }

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
func newCorpus(t testing.TB, c nfttest.Corpus) *corpus {
	t.Helper()
	return &corpus{Corpus: c, Table: declared.Corpus(t, &c), family: nfttest.Must(nft.ParseFamily(c.Family))}
}

// TestCorpora compiles all corpora. Decoding is the inverse of encoding, every expression has a name,
// and no rule changes the order of a single byte, which newer kernels refuse.
func TestCorpora(t *testing.T) {
	rules := 0
	for _, c := range readCorpora(t) {
		for _, text := range c.Rules {
			rule, err := CompileRule(c.family, nft.Rule{Text: text}, c)
			if err != nil {
				continue
			}
			rules++
			dump := rule.Dump()
			if strings.Contains(dump, "2, 1)") && strings.Contains(dump, "byteorder") {
				t.Errorf("%s %s: the order of a byte is changed:\n%s", c.family, text, dump)
			}
			// libnftnl itself has no name for ct id.
			if strings.Contains(strings.ReplaceAll(dump, "ct load unknown =>", ""), "unknown") {
				t.Errorf("%s: %s", text, dump)
			}
			b := nfttest.Must(rule.Encode(0))
			decoded := &Rule{}
			if decoded.Exprs, err = expr.Decode(b); err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			again, err := decoded.Encode(0)
			if err != nil || decoded.Dump() != dump || !bytes.Equal(again, b) {
				t.Errorf("%s: %v\n got\n%s%x\nwant\n%s%x", text, err, decoded.Dump(), again, dump, b)
			}
		}
	}
	if rules < 10_000 {
		t.Errorf("%d rules compile, want the rules of the corpora", rules)
	}
}
