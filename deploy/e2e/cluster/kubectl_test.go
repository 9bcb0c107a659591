package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLinkKubectl(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	for _, name := range []string{"old", "new"} { // a link of an earlier run is replaced
		binary := filepath.Join(bin, name)
		if err := os.WriteFile(binary, []byte(name), 0o700); err != nil {
			t.Fatal(err)
		}
		link, err := LinkKubectl(binary, dir)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(link); err != nil || string(got) != name || filepath.Base(link) != "kubectl" {
			t.Errorf("%s is a link to %q, %v; want %s", link, got, err, name)
		}
	}
	if _, err := LinkKubectl("controlplane", filepath.Join(dir, "missing")); err == nil {
		t.Error("no error for a directory that does not exist")
	}
}
