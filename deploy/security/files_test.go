package security

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var write = flag.Bool("write", false, "write the files anew")

// TestFiles has the files as the package makes them now.
func TestFiles(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range files {
		if *write {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // of a repository
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // of a repository
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || string(have) != text {
			t.Errorf("%s is not what the package makes (%v): run make profiles", path, err)
		}
	}
}
