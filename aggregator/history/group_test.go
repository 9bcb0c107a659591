package history

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// TestPatientCommitsShareATransaction records a commit a second, each of which may be written late: nothing is
// rendered and no transaction is made before patience is over, unless somebody reads or the group is large.
func TestPatientCommitsShareATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := start(t, dir, Config{})
		// transactions returns how many were made so far.
		transactions := func() int {
			synctest.Wait()
			return int(r.transactions.Load())
		}
		var rendered atomic.Int64
		revision := uint64(1)
		record := func() {
			revision++
			c := patch(revision, "a", []string{fmt.Sprintf("10.0.%d.%d", revision/250, revision%250)}, nil)
			render := c.Changes[0].Patch
			c.Changes[0].Patch = func() *weftv1.Patch { rendered.Add(1); return render() }
			c.Patient = true
			r.Record(c)
		}
		pass := func(d time.Duration) { <-time.After(d) }

		empty := transactions()
		r.Record(snapshot(revision, false, list("a", "10.0.0.1")))
		pass(interval)
		first := transactions()
		if first != empty+1 {
			t.Fatalf("%d transactions for a commit that is not patient, want 1", first-empty)
		}
		pass(time.Hour)
		for range patience/time.Second - 2 {
			record()
			pass(time.Second)
		}
		if n := transactions() - first; n != 0 || rendered.Load() != 0 {
			t.Errorf("%d transactions and %d patches rendered before the group is due, want none", n, rendered.Load())
		}
		pass(2 * time.Second)
		if n := transactions() - first; n != 1 || rendered.Load() != int64(revision)-1 {
			t.Errorf("%d transactions and %d patches rendered after %d commits, want one with all", n, rendered.Load(), revision-1)
		}

		// A reader has them at once.
		record()
		if all, _, err := r.List(t.Context(), Query{Reader: everything}); err != nil || all[0].GetRevision() != revision {
			t.Errorf("the newest is %v, error %v, want %d", all[0], err, revision)
		}
		// So has the disk if they are many.
		before := transactions()
		for range groupSize {
			record()
		}
		if n := transactions() - before; n != 1 {
			t.Errorf("%d transactions for a large group, want 1", n)
		}
		// A stop loses none.
		record()
		r.stop()
		r = start(t, dir, Config{})
		if all, _, err := r.List(t.Context(), Query{Reader: everything}); err != nil || all[0].GetRevision() != revision {
			t.Errorf("after a restart the newest is %v, error %v, want %d", all[0], err, revision)
		}
		r.stop()
	})
}
