package report

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("before\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter\n")
	if err := Write(file, "x", Table([][]string{{"a", "b"}, {"1", "2"}})); err != nil {
		t.Fatal(err)
	}
	want := "before\n<!-- x: begin -->\n| a | b |\n| --- | --- |\n| 1 | 2 |\n<!-- x: end -->\nafter\n"
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("the document is %q, %v, want %q", got, err, want)
	}
	put("nothing\n")
	if err := Write(file, "x", "text"); err == nil {
		t.Error("Write to a document without the section succeeds")
	}
}
