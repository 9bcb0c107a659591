package behaviourtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCheck writes the page of a list.
func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	pagesDir := t.TempDir()
	t.Setenv(pages, pagesDir)
	// The tag in this file must not be one of the list of another package.
	write(t, "x_test.go", "package x\n\n// TestX is a test.\n//\n// Example"+": 1, 3-4.\nfunc TestX(t *testing.T) {}\n")
	write(t, "story.txtar", "# Example"+": 2.\n")
	write(t, "list.txt", "# Words.\n\n## Numbers\n1\ta\n2\tb\n3\tc\n4\td|e\n5\tnot weft's\n")
	Table{File: "list.txt", Page: "list.md", Tag: "Example", Root: "."}.Check(t)
	text, err := os.ReadFile(filepath.Join(pagesDir, "list.md"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "\n## Numbers\n\n| number | behaviour | shown by |\n| --- | --- | --- |\n| 1 | a | `TestX` in x_test.go |\n| 2 | b | `story.txtar` |\n" +
		"| 3 | c | `TestX` in x_test.go |\n| 4 | d\\|e | `TestX` in x_test.go |\n| 5 | not weft's |  |\n"
	if string(text) != want {
		t.Errorf("the page is\n%swant\n%s", text, want)
	}
}

// TestProblems has lists and tags that do not agree.
func TestProblems(t *testing.T) {
	const tag = "// Example" + ": "
	for name, tt := range map[string]struct{ list, test, want string }{
		"no test":            {"1\ta", "", "behaviour 1 has no test: a"},
		"no row":             {"2\ta", tag + "1-2.\nfunc TestX(t *testing.T) {}", "behaviour 1 has no row"},
		"twice":              {"1\ta\n1\ta", "", "number 1 is out of place"},
		"a tag of no number": {"1\ta", tag + "7.\nfunc TestX(t *testing.T) {}", "behaviour 7, which does not exist"},
		"a tag at the end":   {"1\ta", tag + "1.", "a tag without a test"},
		"a tag of nothing":   {"1\ta", tag + "1.\nvar x int", "a tag that does not end the comment"},
		"no number":          {"1\ta", tag + "1-.\nfunc TestX(t *testing.T) {}", "invalid syntax"},
		"no list":            {"1\ta", tag + ",.\nfunc TestX(t *testing.T) {}", "invalid syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "list.txt", tt.list)
			write(t, "x_test.go", tt.test)
			problems, _, err := Table{File: "list.txt", Tag: "Example", Root: "."}.compare()
			if got := strings.Join(problems, "\n") + fmt.Sprint(err); !strings.Contains(got, tt.want) {
				t.Errorf("problems %q, want %q", got, tt.want)
			}
		})
	}
	if _, _, err := (Table{File: "none", Root: t.TempDir()}).compare(); err == nil {
		t.Error("no error without a list")
	}
}
