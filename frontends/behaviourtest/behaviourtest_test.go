package behaviourtest

import (
	"os"
	"path/filepath"
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
