package statedir

import (
	"errors"
	"os"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/trusted"
)

// TestConfiguredIsStored loads small and large fragments again, and a patched one.
func TestConfiguredIsStored(t *testing.T) {
	dir := t.TempDir()
	d, _ := load(t, dir)
	configured := func(name string, n int) Change {
		c := snapshot(fragment(name, n))
		c.Configured = true
		return c
	}
	must(t, storeNow(d, configured("large", partEntries+1), snapshot(fragment("other", 1)), configured("replaced", 1), configured("small", 1)))
	must(t, storeNow(d, snapshot(fragment("replaced", 2)), Change{Fragment: key("small"), Patch: func() *weftv1.Patch { return &weftv1.Patch{Fragment: "small"} }}))
	for range 2 {
		must(t, d.Close())
		var c *Contents
		d, c = load(t, dir)
		want := map[string]bool{"large": true, "other": false, "replaced": false, "small": true}
		if len(c.Fragments) != len(want) {
			t.Fatalf("%d fragments, want %d", len(c.Fragments), len(want))
		}
		for _, f := range c.Fragments {
			if f.Configured != want[f.Key.Name] {
				t.Errorf("fragment %s is configured: %t, want %t", f.Key, f.Configured, want[f.Key.Name])
			}
		}
	}
}

// TestUnsafeDirectoryIsRefused changes nothing in it.
func TestUnsafeDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	d, _ := load(t, dir)
	must(t, storeNow(d, snapshot(fragment("f", 1))))
	must(t, d.Close())
	must(t, os.Chmod(dir, 0o777))
	w := watch(dir)
	if _, err := w.Load(); !errors.Is(err, trusted.ErrUnsafe) || len(w.failed) != 0 {
		t.Errorf("load: %v, failures %v; want %v", err, w.failed, trusted.ErrUnsafe)
	}
	if got := files(t, dir); got != "state.db" {
		t.Errorf("files %s", got)
	}
	must(t, os.Chmod(dir, 0o750))
	_, c := load(t, dir)
	wantFragments(t, c, fragment("f", 1))
}
