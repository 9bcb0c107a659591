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
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
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
				if err := os.WriteFile(c.path, txtar.Format(c.archive), 0o644); err != nil {
					t.Fatal(err)
				}
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
	_, err := Parse("x", `
		define p = 80
		table inet x {
			comment "t"
			map m { type inet_service : verdict; timeout 1h; elements = { $p timeout 5s comment "c" : goto out } }
			chain out { type filter hook output priority filter - 5; policy drop; comment "o"; tcp dport $p accept comment "web"; drop }
		}
		add chain x c`)
	if err == nil || !strings.Contains(err.Error(), "x:8:13: table ip x is not declared") {
		t.Errorf("the undeclared table gives %v", err)
	}
	got, err := Parse("x", `
		table inet x {
			comment "t"
			map m { type inet_service : verdict; flags timeout; elements = { 80 timeout 5s comment "c" : goto out } }
			chain out { type filter hook output priority filter - 5; policy drop; comment "o"; tcp dport 80 accept comment "web"; drop }
		}`)
	if err != nil {
		t.Fatal(err)
	}
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

// BenchmarkParse reads the elements of 1,000 services with 10 endpoints.
func BenchmarkParse(b *testing.B) {
	var text strings.Builder
	text.WriteString("table ip weft {\nmap endpoints {\ntypeof ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport\nelements = {\n")
	for i := range 10000 {
		fmt.Fprintf(&text, "10.96.%d.%d . tcp . 80 . %d : 10.1.%d.%d . 8080,\n", i/10/250, i/10%250, i%10, i/250, i%250)
	}
	text.WriteString("}\n}\n}\n")
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("x", text.String()); err != nil {
			b.Fatal(err)
		}
	}
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
