package nfttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Corpus is a file of rules in one family.
type Corpus struct {
	// such as "ct.txt/ip"
	Name string
	Ruleset
}

// ReadCorpora reads the text files of a directory.
func ReadCorpora(t testing.TB, dir string) []Corpus {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus found in %s: %v", dir, err)
	}
	var out []Corpus
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ParseCorpus(t, filepath.Base(f), string(text))...)
	}
	return out
}

// ParseCorpus returns a corpus for each family of a line "family F...", with an optional line
// "unchecked" (see Ruleset), declarations, a line "---", and rules. Lines with # are ignored. Rules
// may jump to chains a and b.
func ParseCorpus(t testing.TB, name, text string) []Corpus {
	t.Helper()
	head, body, ok := strings.Cut(text, "\n---\n")
	if !ok {
		t.Fatalf("%s: no line with ---", name)
	}
	var families []string
	r := Ruleset{Chains: []string{"a", "b"}, Rules: textLines(body)}
	for _, line := range textLines(head) {
		words, isFamily := strings.CutPrefix(line, "family ")
		switch {
		case isFamily:
			families = strings.Fields(words)
		case line == "unchecked":
			r.Unchecked = true
		default:
			r.Decls = append(r.Decls, line)
		}
	}
	out := make([]Corpus, len(families))
	for i, family := range families {
		r.Family = family
		out[i] = Corpus{Name: name + "/" + family, Ruleset: r}
	}
	return out
}

func textLines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}
