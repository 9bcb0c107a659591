package compile

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
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
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := golden(t, filepath.Base(file), archive)
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
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
