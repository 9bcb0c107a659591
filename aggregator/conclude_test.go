package aggregator

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// TestEachUpdateHasItsOwnOutcome has a commit of many updates, of which those of durable fragments cannot be
// stored: their answers say so, each for its own fragment, and the others are committed.
func TestEachUpdateHasItsOwnOutcome(t *testing.T) {
	dir := t.TempDir()
	a, err := New(Config{Kernel: idle{}, StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	// The database cannot be made, so that each write fails.
	blocked := filepath.Join(dir, "state.db.tmp")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.dir.Close() })
	if _, err := a.dir.Load(); err != nil {
		t.Fatal(err)
	}
	const updates = 20_000
	batch := make([]*submission, updates)
	for i := range batch {
		key := desired.Key{Publisher: "tester", Name: strconv.Itoa(i)}
		batch[i] = &submission{update: &desired.Update{Fragment: key}, durable: i%2 == 0, result: make(chan Result, 1)}
	}
	a.writer.conclude(batch, Result{Revision: 7})
	for _, s := range batch {
		r := <-s.result
		rejected := (*RejectedError)(nil)
		switch {
		case r.Revision != 7:
			t.Fatalf("%s is answered with revision %d, want 7", s.key(), r.Revision)
		case !s.durable && r.Err != nil:
			t.Fatalf("%s is in force and needs not be stored: %v", s.key(), r.Err)
		case !s.durable:
		case !errors.As(r.Err, &rejected):
			t.Fatalf("%s is not stored, and its answer is %v", s.key(), r.Err)
		case rejected.Fragment != s.key() || rejected.Violations[0].GetReason() != weftv1.Violation_REASON_LIMIT:
			t.Fatalf("the answer to %s is %v", s.key(), r.Err)
		}
	}
	// A later store of the same state directory succeeds: the failure is not kept.
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	s := &submission{update: &desired.Update{Fragment: desired.Key{Publisher: "tester", Name: "later"}, Snapshot: true}, durable: true, result: make(chan Result, 1)}
	a.writer.conclude([]*submission{s}, Result{Revision: 8})
	if r := <-s.result; r.Err != nil || r.Revision != 8 {
		t.Errorf("a later update is answered with %v", r)
	}
}
