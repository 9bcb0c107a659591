package statedir

import (
	"context"
	"fmt"
	"maps"
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

// queue holds the changes that are not stored yet, by fragment. Its length is
// bounded by those who submit: a stream waits for the answers to a bounded
// number of updates, and Failing has patches refused while nothing can be stored.
type queue struct {
	nudge chan struct{}
	// failing is why the last attempt failed; nil if everything is stored.
	failing atomic.Pointer[error]

	pendingMu sync.Mutex
	pending   map[desired.Key]*pendingChanges
}

// pendingChanges are those of one fragment. A snapshot or removal makes the
// changes before it superfluous.
type pendingChanges struct {
	changes []Change
	done    []func(error)
}

// add adds a change.
func (p *pendingChanges) add(c Change) {
	if c.Patch == nil {
		p.changes = nil
	}
	p.changes = append(p.changes, c)
	if c.Done != nil {
		p.done = append(p.done, c.Done)
	}
}

// answer calls Done of all changes, once.
func (p *pendingChanges) answer(err error) {
	for _, done := range p.done {
		done(err)
	}
	p.done = nil
}

// Store queues a change for Run, and returns at once.
func (d *Dir) Store(c Change) {
	d.pendingMu.Lock()
	p := d.pending[c.Fragment]
	if p == nil {
		p = &pendingChanges{}
		d.pending[c.Fragment] = p
	}
	p.add(c)
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
	batch := d.pending
	d.pending = make(map[desired.Key]*pendingChanges)
	d.pendingMu.Unlock()
	if len(batch) == 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(batch), desired.Key.Compare)
	err := d.write(keys, batch)
	if err == nil {
		if d.failing.Swap(nil) != nil {
			d.log.Info("durable fragments are stored again", "fragments", len(keys))
		}
		for _, key := range keys {
			batch[key].answer(nil)
		}
		return
	}
	d.failing.Store(&err)
	for _, key := range keys {
		d.failed(KindDurable)
		d.log.Error("durable fragment is not stored", "fragment", key.String(), "error", err, "retry", d.retry)
		batch[key].answer(err)
	}
	d.requeue(batch)
}

// requeue puts changes back, before those that were queued since.
func (d *Dir) requeue(batch map[desired.Key]*pendingChanges) {
	d.pendingMu.Lock()
	defer d.pendingMu.Unlock()
	for key, p := range batch {
		if later := d.pending[key]; later != nil {
			for _, c := range later.changes {
				p.add(c)
			}
			p.done = later.done
		}
		d.pending[key] = p
	}
}

// partEntries is how many entries one transaction stores of a large snapshot.
const partEntries = 8192

// write stores changes. The first one of each fragment may be a snapshot.
func (d *Dir) write(keys []desired.Key, batch map[desired.Key]*pendingChanges) error {
	snapshots := make(map[desired.Key][]entries.Entry)
	for _, key := range keys {
		first := batch[key].changes[0]
		if first.Snapshot == nil {
			continue
		}
		all := entriesOf(first.Snapshot(), first.Configured)
		if len(all) <= partEntries {
			snapshots[key] = all
		} else if err := putInParts(d.update, stagedBucket, key, all); err != nil {
			return err
		}
	}
	return d.update(func(tx *bolt.Tx) error {
		return changeFragments(tx, func(fs *fragments) error {
			for _, key := range keys {
				for _, c := range batch[key].changes {
					if err := fs.store(c, snapshots[key]); err != nil {
						return fmt.Errorf("store fragment %s: %w", key, err)
					}
				}
			}
			return nil
		})
	})
}
