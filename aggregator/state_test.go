package aggregator_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/conntrack"
)

// database is the path of the database of a state directory.
func database(dir string) string { return filepath.Join(dir, "weft.db") }

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
	d := statedir.New(statedir.Config{Path: copied, Retry: 1, Logger: slog.New(slog.DiscardHandler), Failed: func(statedir.Kind) {}})
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

// sealed returns a file as versions of weft before the database wrote them.
func sealed(kind string, version int, payload []byte) []byte {
	return fmt.Appendf(nil, "%s %d sha256:%x\n%s", kind, version, sha256.Sum256(payload), payload)
}

// legacyState replaces the database of a state directory by the files that
// versions of weft before it wrote.
func legacyState(t *testing.T, dir string) {
	t.Helper()
	c, _ := state(t, dir)
	must(t, os.Remove(database(dir)))
	text, err := json.Marshal(map[string]any{"version": 2, "revision": c.Revision, "desired": c.Record.Desired})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "record.json"), sealed("weft-record", 2, text), 0o600))
	for _, f := range c.Fragments {
		b, err := proto.Marshal(f.Content)
		must(t, err)
		path := filepath.Join(dir, "durable", f.Key.Publisher, f.Key.Name+".pb")
		must(t, os.MkdirAll(filepath.Dir(path), 0o750))
		must(t, os.WriteFile(path, sealed("weft-fragment", 1, b), 0o600))
	}
}
