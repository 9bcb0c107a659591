package nfttest

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestReadCorpora(t *testing.T) {
	dir := t.TempDir()
	text := "# a comment\nfamily ip inet\nunchecked\nset s { type ipv4_addr; }\n---\n\naccept\n# another\n  drop\n"
	if err := os.WriteFile(filepath.Join(dir, "x.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want := make([]Corpus, 2)
	for i, family := range []string{"ip", "inet"} {
		want[i] = Corpus{Name: "x.txt/" + family, Ruleset: Ruleset{
			Family: family, Decls: []string{"set s { type ipv4_addr; }"}, Chains: []string{"a", "b"}, Rules: []string{"accept", "drop"}, Unchecked: true,
		}}
	}
	if got := ReadCorpora(t, dir); !reflect.DeepEqual(got, want) {
		t.Errorf("ReadCorpora = %+v\nwant %+v", got, want)
	}
}
