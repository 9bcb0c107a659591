package compile

import (
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/set"
)

// fileScope answers for the declarations of one table of a file.
type fileScope map[string]*set.Set

func (s fileScope) Set(name string) (*set.Set, bool) { set, ok := s[name]; return set, ok }

func (s fileScope) Chain(string) bool { return true }

func (fileScope) Object(nft.ObjectKind, string) bool { return true }

func (s fileScope) Flowtable(string) bool { return true }

// TestCompileFiles compiles everything in the files that package ruleset reads:
// declarations, elements and rules.
func TestCompileFiles(t *testing.T) {
	paths, err := filepath.Glob("../ruleset/testdata/file/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files: %v", err)
	}
	compiled := 0
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := ruleset.Parse(path, string(archive.Files[0].Data))
		if err != nil {
			continue // errors are tested in package ruleset
		}
		for _, table := range tables {
			compiled += compileTable(t, table)
		}
	}
	if compiled < 20 {
		t.Errorf("only %d objects were compiled", compiled)
	}
}

func compileTable(t *testing.T, table nft.Table) (compiled int) {
	t.Helper()
	scope := fileScope{}
	pack := func(s *set.Set, err error, elements []nft.Element) {
		if err != nil {
			t.Errorf("table %s: %v", table.ID(), err)
			return
		}
		scope[s.Name] = s
		var packed []set.Element
		for _, e := range elements {
			p, err := s.Pack(e)
			if err != nil {
				t.Errorf("table %s: %v", table.ID(), err)
			}
			packed = append(packed, p)
		}
		if _, err := s.Normalize(packed); err != nil {
			t.Errorf("table %s: %v", table.ID(), err)
		}
		compiled += 1 + len(packed)
	}
	for i := range table.Sets {
		set, err := set.Compile(table.Family, &table.Sets[i])
		pack(set, err, table.Sets[i].Elements)
	}
	for i := range table.Maps {
		set, err := set.CompileMap(table.Family, &table.Maps[i])
		pack(set, err, table.Maps[i].Elements)
	}
	for i := range table.Chains {
		if _, err := object.CompileChain(table.Family, &table.Chains[i]); err != nil {
			t.Errorf("table %s: %v", table.ID(), err)
		}
		for _, r := range table.Chains[i].Rules {
			if _, err := CompileRule(table.Family, r, scope); err != nil {
				t.Errorf("table %s: rule %q: %v", table.ID(), r.Text, err)
			}
			compiled++
		}
	}
	return compiled
}
