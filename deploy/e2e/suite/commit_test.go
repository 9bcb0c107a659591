package suite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExtract has a repository with two commits, and clones that lack the first one.
func TestExtract(t *testing.T) {
	dir := t.TempDir()
	repository := filepath.Join(dir, "repository")
	run := func(args ...string) string {
		t.Helper()
		out, err := git(repository, append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if err := os.Mkdir(repository, 0o755); err != nil {
		t.Fatal(err)
	}
	run("init", "-q")
	for _, text := range []string{"first", "second"} {
		if err := os.WriteFile(filepath.Join(repository, "file"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run("add", "file")
		run("commit", "-q", "-m", text)
	}
	first := run("rev-parse", "HEAD~1")
	to := filepath.Join(dir, "extracted")
	if err := os.MkdirAll(filepath.Join(to, "of another commit"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := extract(repository, first, to); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "file")); err != nil || string(b) != "first" {
		t.Errorf("file %q (%v), want that of the first commit", b, err)
	}
	if all, err := os.ReadDir(to); err != nil || len(all) != 1 {
		t.Errorf("files %v (%v), want those of the commit alone", all, err)
	}

	shallow := filepath.Join(dir, "shallow")
	run("clone", "-q", "--depth=1", "file://"+repository, shallow)
	for from, want := range map[string]string{shallow: "git fetch --unshallow", dir: "not a clone"} {
		if err := extract(from, first, to); !errors.Is(err, errNoCommit) || !strings.Contains(err.Error(), want) {
			t.Errorf("extract from %s: %v, want %q", from, err, want)
		}
	}
	if err := extract(repository, strings.Repeat("0", 40), to); !errors.Is(err, errNoCommit) || !strings.Contains(err.Error(), "run git fetch") {
		t.Errorf("extract of an unknown commit: %v", err)
	}
}
