package statedir

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/entries"
)

// Change is a committed update of a fragment that is or was durable. It has at most
// one of Snapshot and Patch; with neither, the fragment is removed.
type Change struct {
	Fragment desired.Key
	// Snapshot returns the whole content, Patch what is different. Run calls them,
	// after a failure again.
	Snapshot func() *weftv1.Fragment
	Patch    func() *weftv1.Patch
	// Configured is that of the Fragment, for a snapshot.
	Configured bool
	// Done is called by Run when the change is stored, and with an error if it is
	// to be tried again.
	Done func(error)
}

// queue holds the changes that are not stored yet. Its length is bounded by those who
// submit: a stream waits for the answers to a bounded number of updates, and Failing has
// patches refused while nothing can be stored.
type queue struct {
	nudge chan struct{}
	// failing is why the last attempt failed; nil if everything is stored.
	failing atomic.Pointer[error]

	pendingMu sync.Mutex
	pending   []Change
	// waiting has the Done of all changes that have not been answered.
	waiting []func(error)
}

// add queues a change. A snapshot or removal makes the earlier changes of its fragment
// superfluous. The lock is held.
func (q *queue) add(c Change) {
	if c.Patch == nil {
		q.pending = slices.DeleteFunc(q.pending, func(o Change) bool { return o.Fragment == c.Fragment })
	}
	q.pending = append(q.pending, c)
}

// Store queues a change for Run, and returns at once.
func (d *Dir) Store(c Change) {
	d.pendingMu.Lock()
	d.add(c)
	if c.Done != nil {
		d.waiting = append(d.waiting, c.Done)
	}
	d.pendingMu.Unlock()
	select {
	case d.nudge <- struct{}{}:
	default:
	}
}

// Failing returns why Run could not store the last changes of fragments; nil if it
// could. Failures of SaveRecord are not reported here.
func (d *Dir) Failing() error {
	if err := d.failing.Load(); err != nil {
		return *err
	}
	return nil
}

// Run stores changes until ctx ends, and then those that are left.
func (d *Dir) Run(ctx context.Context) {
	for {
		var retry <-chan time.Time
		if d.Failing() != nil {
			retry = time.After(d.retry)
		}
		select {
		case <-ctx.Done():
			d.storeAll()
			return
		case <-d.nudge:
		case <-retry:
		}
		d.storeAll()
	}
}

// storeAll stores what is queued, in one transaction.
func (d *Dir) storeAll() {
	d.pendingMu.Lock()
	batch, waiting := d.pending, d.waiting
	d.pending, d.waiting = nil, nil
	d.pendingMu.Unlock()
	if len(batch) == 0 {
		return
	}
	err := d.write(batch)
	switch {
	case err != nil:
		d.failing.Store(&err)
		d.failed(KindDurable)
		d.log.Error("durable fragments are not stored", "changes", len(batch), "first", batch[0].Fragment.String(), "error", err, "retry", d.retry)
		d.requeue(batch)
	case d.failing.Swap(nil) != nil:
		d.log.Info("durable fragments are stored again", "changes", len(batch))
	}
	for _, done := range waiting {
		done(err)
	}
}

// requeue puts changes back, before those that were queued since.
func (d *Dir) requeue(batch []Change) {
	d.pendingMu.Lock()
	defer d.pendingMu.Unlock()
	later := d.pending
	d.pending = batch
	for _, c := range later {
		d.add(c)
	}
}

// partEntries is how many entries one transaction stores of a large snapshot.
const partEntries = 8192

// write stores changes.
func (d *Dir) write(batch []Change) error {
	snapshots := make([][]entries.Entry, len(batch))
	for i, c := range batch {
		if c.Snapshot == nil {
			continue
		}
		all := entriesOf(c.Snapshot(), c.Configured)
		if len(all) <= partEntries {
			snapshots[i] = all
		} else if err := putInParts(d.update, stagedBucket, c.Fragment, all); err != nil {
			return err
		}
	}
	return d.update(func(tx *bolt.Tx) error {
		return changeFragments(tx, func(fs *fragments) error {
			for i, c := range batch {
				if err := fs.store(c, snapshots[i]); err != nil {
					return fmt.Errorf("store fragment %s: %w", c.Fragment, err)
				}
			}
			return nil
		})
	})
}
