package ruleset

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/syntax"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

var updateFiles = flag.Bool("update-files", false, "rewrite the expectations of testdata/file")

// fileCase is one of testdata/file/*.txtar: file.nft is parsed, want.nft is
// what Format prints of it; or error is what is wrong with it.
type fileCase struct {
	name, path string
	archive    *txtar.Archive
}

func (c *fileCase) section(name string) (string, bool) {
	for _, f := range c.archive.Files {
		if f.Name == name {
			return string(f.Data), true
		}
	}
	return "", false
}

func fileCases(t testing.TB) []fileCase {
	t.Helper()
	paths, err := filepath.Glob("testdata/file/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	var cases []fileCase
	for _, path := range paths {
		archive := nfttest.Must(txtar.ParseFile(path))
		cases = append(cases, fileCase{strings.TrimSuffix(filepath.Base(path), ".txtar"), path, archive})
	}
	return cases
}

// describeErrors prints errors with their places as a person sees them.
func describeErrors(err error) string {
	var list *ErrorList
	if !errors.As(err, &list) {
		return fmt.Sprintf("%T: %v\n", err, err)
	}
	var b strings.Builder
	for _, e := range list.Errors {
		fmt.Fprintf(&b, "%v\n", e)
		for line := range strings.Lines(e.Excerpt()) {
			b.WriteString("  | " + line)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestParse(t *testing.T) {
	for _, c := range fileCases(t) {
		t.Run(c.name, func(t *testing.T) {
			text, ok := c.section("file.nft")
			if !ok {
				t.Fatal("no section file.nft")
			}
			tables, err := Parse("file.nft", text)
			section, got := "want.nft", Format(tables)
			if err != nil {
				section, got = "error", describeErrors(err)
			}
			if *updateFiles {
				c.archive.Files = []txtar.File{{Name: "file.nft", Data: []byte(text)}, {Name: section, Data: []byte(got)}}
				nfttest.NoError(t, os.WriteFile(c.path, txtar.Format(c.archive), 0o644))
				return
			}
			if want, _ := c.section(section); got != want {
				t.Errorf("%s:\n%s\nwant:\n%s", section, got, want)
			}
			if err != nil {
				if tables != nil {
					t.Errorf("an error and %d tables", len(tables))
				}
				return
			}
			again, err := Parse("want.nft", got)
			if err != nil {
				t.Fatalf("the printed file does not parse: %v", err)
			}
			if !reflect.DeepEqual(again, tables) {
				t.Errorf("the printed file reads back as\n%+v\nwant\n%+v", again, tables)
			}
		})
	}
}

func TestParseModel(t *testing.T) {
	got := nfttest.Must(Parse("x", `
		table inet x {
			comment "t"
			map m { type inet_service : verdict; flags timeout; elements = { 80 timeout 5s comment "c" : goto out } }
			chain out { type filter hook output priority filter - 5; policy drop; comment "o"; tcp dport 80 accept comment "web"; drop }
		}`))
	want := []nft.Table{{
		Family: nft.FamilyInet, Name: "x", Comment: "t",
		Maps: []nft.Map{{
			Name: "m", Type: "inet_service : verdict", Flags: []string{"timeout"},
			Elements: []nft.Element{{Key: "80", Value: "goto out", Timeout: 5 * time.Second, Comment: "c"}},
		}},
		Chains: []nft.Chain{{
			Name: "out", Type: "filter", Hook: "output", Priority: "filter - 5", Policy: "drop", Comment: "o",
			Rules: []nft.Rule{{Text: "tcp dport 80 accept", Comment: "web"}, {Text: "drop"}},
		}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("parses to\n%+v\nwant\n%+v", got, want)
	}
}

func TestParseBounds(t *testing.T) {
	if _, err := Parse("x", strings.Repeat("#", MaxLength+1)); err == nil {
		t.Error("a file without end is taken")
	}
	var bomb strings.Builder
	bomb.WriteString("define a0 = 1.1.1.1\n")
	for i := range 40 {
		fmt.Fprintf(&bomb, "define a%d = $a%d,$a%d\n", i+1, i, i)
	}
	bomb.WriteString("table ip x { set s { type ipv4_addr; elements = { $a40 } } }\n")
	if _, err := Parse("x", bomb.String()); err == nil || !strings.Contains(err.Error(), "expand to more than") {
		t.Errorf("variables that double 40 times give %.200v", err)
	}
	deep := "table ip x { set s { type mark; elements = " + strings.Repeat("{", 100000)
	if _, err := Parse("x", deep); err == nil || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("deep nesting gives %.200v", err)
	}
	_, err := Parse("x", strings.Repeat("bogus\n", 1000))
	var list *ErrorList
	if !errors.As(err, &list) || len(list.Errors) != MaxErrors {
		t.Errorf("1000 errors give %.200v", err)
	}
	var first *syntax.Error
	if !errors.As(err, &first) || first.Pos != (syntax.Pos{Line: 1, Column: 1}) || first.Line != "bogus" {
		t.Errorf("the first error is %+v", first)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range fileCases(f) {
		for _, file := range c.archive.Files {
			if file.Name != "error" {
				f.Add(string(file.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		tables, err := Parse("f", text)
		if err != nil {
			var list *ErrorList
			if tables != nil || !errors.As(err, &list) || len(list.Errors) == 0 {
				t.Fatalf("%d tables and the error %v", len(tables), err)
			}
			_ = describeErrors(err)
			return
		}
		printed := Format(tables)
		again, err := Parse("g", printed)
		if err != nil {
			t.Fatalf("%q prints as\n%s\nwhich does not parse: %v", text, printed, err)
		}
		if !reflect.DeepEqual(again, tables) {
			t.Fatalf("%q prints as\n%s\nand reads back as\n%+v\nwant\n%+v", text, printed, again, tables)
		}
	})
}

// TestVariablesHaveOneBudget lets variables grow in the ways that one limit for each value
// would miss.
func TestVariablesHaveOneBudget(t *testing.T) {
	long := "define long = { " + strings.Repeat("10.0.0.1, ", 100_000) + "}\n"
	var aliases, nested strings.Builder
	nested.WriteString("define a0 = 10.0.0.1, 10.0.0.2\n")
	for i := range 400 {
		fmt.Fprintf(&aliases, "define a%d = $long\n", i)
	}
	for i := range 18 {
		fmt.Fprintf(&nested, "define a%d = $a%d, $a%d\n", i+1, i, i)
	}
	set := "table ip x { set s { type ipv4_addr; elements = { %s } } }\n"
	for name, text := range map[string]string{
		"aliases": long + aliases.String(),
		"nested":  nested.String() + fmt.Sprintf(set, "$a18"),
		"uses":    long + fmt.Sprintf(set, strings.Repeat("$long, ", 400)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse("x", text)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "the variables of the file expand to more than") {
			t.Errorf("%s: error %.200v", name, err)
		}
		if n, most := after.TotalAlloc-before.TotalAlloc, uint64(256*(len(text)+1<<18)); n > most {
			t.Errorf("%s: %d bytes of text allocate %d: want at most %d", name, len(text), n, most)
		}
	}
	if _, err := Parse("x", long+fmt.Sprintf(set, strings.Repeat("$long, ", 4))); err != nil {
		t.Errorf("a list that is used 4 times: %.200v", err)
	}
}

// findRule returns rule number n (from 0) of a chain as it is written in a file.
func findRule(text string, table nft.TableID, chain string, n int) (*Rule, bool) {
	_, positions, _ := ParsePositions("", text)
	return positions.Rule(table, chain, n)
}

// TestFindRuleAfterChanges finds rules where they ended up.
func TestFindRuleAfterChanges(t *testing.T) {
	const text = `define p = 80
table ip x { chain c { accept; drop; } }
flush chain ip x c
add rule ip x c tcp dport $p accept
insert rule ip x c index 0   counter
insert rule ip x c  ct state new drop
`
	id := nft.TableID{Family: nft.FamilyIP, Name: "x"}
	for n, want := range []string{"ct state new drop", "counter", "tcp dport 80 accept"} {
		r, ok := findRule(text, id, "c", n)
		if !ok || r.Text != want {
			t.Fatalf("rule %d is %+v, want %q", n, r, want)
		}
		if e := r.Error(&syntax.Error{Pos: syntax.Pos{Line: 1, Column: 1}}); e.Pos.Line != 6-n {
			t.Errorf("rule %d is at %s", n, e.Pos)
		}
	}
	for _, n := range []int{-1, 3} {
		if _, ok := findRule(text, id, "c", n); ok {
			t.Errorf("there is a rule %d", n)
		}
	}
	if _, ok := findRule(text+"flush ruleset\n", id, "c", 0); ok {
		t.Error("a flushed rule is found")
	}
}

// TestHostileChanges parses commands that could each cost as much as the whole file.
func TestHostileChanges(t *testing.T) {
	const n = 20000
	var tables, elements strings.Builder
	for i := range n {
		fmt.Fprintf(&tables, "table inet t%d { chain c { drop; }; }\n", i)
		fmt.Fprintf(&elements, "%d, ", i)
	}
	for name, text := range map[string]string{
		"flush ruleset":        tables.String() + strings.Repeat("flush ruleset\n", n),
		"flush ruleset ip":     tables.String() + strings.Repeat("flush ruleset ip\n", n),
		"delete tables":        tables.String() + strings.Repeat("table x; delete table x\n", n),
		"flush table":          "table x { chain c { drop; }; }\n" + strings.Repeat("flush table x\nadd rule x c drop\n", n),
		"insert":               "table x { chain c { }; }\n" + strings.Repeat("insert rule x c drop\n", n),
		"delete element":       "table x { set s { type mark; elements = { " + elements.String() + "}; }; }\n" + strings.Repeat("delete element x s { 7 }\nadd element x s { 7 }\n", n),
		"undeclared":           strings.Repeat("flush table x\n", n) + "table x",
		"braces":               strings.Repeat("{", 64*n),
		"define in deep block": strings.Repeat("table x {", n) + strings.Repeat("define a = 1\n", n),
	} {
		start := time.Now()
		_, _ = Parse("x", text) // whether it is right does not matter
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s takes %s for %d bytes", name, d, len(text))
		}
	}
}

// TestIndexBound refuses an index in a long chain.
func TestIndexBound(t *testing.T) {
	text := "table x { chain c { }; }\n" + strings.Repeat("add rule x c drop\n", maxIndexed) + "insert rule x c index 0 drop\n"
	if _, err := Parse("x", text); err == nil || !strings.Contains(err.Error(), "index is not possible in a chain of more than 4096 rules") {
		t.Errorf("got %v", err)
	}
}
