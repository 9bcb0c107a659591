package behaviourtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck writes the column of a table, and compares it.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The tag in this file must not be one of the table of another package.
	write("x_test.go", "package x\n\n// TestX is a test.\n//\n// Example"+": 1, 3-4.\nfunc TestX(t *testing.T) {}\n")
	write("story.txtar", "# Example"+": 2.\n")
	write("TABLE.md", "| number | behaviour | shown by |\n| --- | --- | --- |\n| 1 | a |  |\n| 2 | b |  |\n| 3 | c |  |\n| 4 | d |  |\n| 5 | not weft's |  |\n")
	b := Table{File: "TABLE.md", Tag: "Example", Last: 5, Root: ".", Update: true}
	b.Check(t)
	text, err := os.ReadFile("TABLE.md")
	if err != nil {
		t.Fatal(err)
	}
	const want = "| number | behaviour | shown by |\n| --- | --- | --- |\n| 1 | a | `TestX` in x_test.go |\n| 2 | b | `story.txtar` |\n" +
		"| 3 | c | `TestX` in x_test.go |\n| 4 | d | `TestX` in x_test.go |\n| 5 | not weft's |  |\n"
	if string(text) != want {
		t.Errorf("the table is\n%swant\n%s", text, want)
	}
	b.Update = false
	b.Check(t)
}

// TestProblems has tables and tags that do not agree.
func TestProblems(t *testing.T) {
	const tag = "// Example" + ": "
	for name, tt := range map[string]struct{ table, test, want string }{
		"another test":       {"| 1 | a | `TestY` in x_test.go |", tag + "1.\nfunc TestX(t *testing.T) {}", "is shown by"},
		"no test":            {"| 1 | a |  |", "", "behaviour 1 has no test: a"},
		"no row":             {"", tag + "1.\nfunc TestX(t *testing.T) {}", "behaviour 1 has no row"},
		"twice":              {"| 1 | a |  |\n| 1 | a |  |", "", "number 1 is out of place"},
		"a tag of no number": {"| 1 | a |  |", tag + "7.\nfunc TestX(t *testing.T) {}", "behaviour 7, which does not exist"},
		"a tag at the end":   {"| 1 | a |  |", tag + "1.", "a tag without a test"},
		"a tag of nothing":   {"| 1 | a |  |", tag + "1.\nvar x int", "a tag that does not end the comment"},
		"no number":          {"| 1 | a |  |", tag + "1-.\nfunc TestX(t *testing.T) {}", "invalid syntax"},
		"no list":            {"| 1 | a |  |", tag + ",.\nfunc TestX(t *testing.T) {}", "invalid syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for file, text := range map[string]string{"TABLE.md": tt.table, "x_test.go": tt.test} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			problems, _, err := Table{File: "TABLE.md", Tag: "Example", Last: 1, Root: "."}.compare()
			if got := strings.Join(problems, "\n") + fmt.Sprint(err); !strings.Contains(got, tt.want) {
				t.Errorf("problems %q, want %q", got, tt.want)
			}
		})
	}
	if _, _, err := (Table{File: "none", Root: t.TempDir()}).compare(); err == nil {
		t.Error("no error without a table")
	}
}
