package aggregator_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/store"
	"github.com/weft-proxy/weft/conntrack"
)

// database is the path of the database of a state directory.
func database(dir string) string { return filepath.Join(dir, "state.db") }

// openState opens a state directory beside the daemon.
func openState(dir string, failed func(kind string)) *statedir.Dir {
	log := slog.New(slog.DiscardHandler)
	return statedir.New(store.New(store.Config{Path: dir, Retry: time.Second, Logger: log, Failed: failed}), log)
}

// state returns what the database of a state directory holds, and the flows that
// are noted there. A daemon may be using it: a copy is read.
func state(t *testing.T, dir string) (*statedir.Contents, []conntrack.Change) {
	t.Helper()
	copied := t.TempDir()
	for _, suffix := range []string{"", ".outdated"} {
		b, err := os.ReadFile(database(dir) + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(t, err)
		must(t, os.WriteFile(database(copied)+suffix, b, 0o600))
	}
	d := openState(copied, func(string) {})
	c, err := d.Load()
	must(t, err)
	must(t, d.Close())
	return c, c.Flows
}

// stored returns a durable fragment of publisher tester as it is on the disk; nil
// if there is none.
func stored(t *testing.T, dir, name string) *weftv1.Fragment {
	t.Helper()
	c, _ := state(t, dir)
	for _, f := range c.Fragments {
		if f.Key.Name == name {
			return f.Content
		}
	}
	return nil
}
