package history

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
)

const (
	// maxWaiting is how many commits wait for the disk.
	maxWaiting = 4096
	// maxWeight is how much content waits with them, in bytes.
	maxWeight = 16 * MaxContent
	// interval is how long a commit waits for others to share its transaction, and patience how long
	// one does that is Patient.
	interval = time.Second
	patience = 30 * time.Second
	// never is when nothing is written if there is nothing to write.
	never = 24 * time.Hour
	// groupSize and groupWeight are how many commits, and how much content, do not wait any longer.
	groupSize   = 512
	groupWeight = 2 * MaxContent
)

// queue holds the commits that are not written yet.
type queue struct {
	// nudge has room for one value: due is earlier than it was.
	nudge chan struct{}

	mu     sync.Mutex
	items  []*Commit
	weight int
	// due is when they are written.
	due time.Time
	// gap stands for the commits that found the queue full. It follows items.
	gap *Commit
	// flushes are answered when everything before them is written, or could not be.
	flushes []chan error
	// failing is why the last attempt to write failed; nil if it did not.
	failing error
	closed  bool
}

// Record queues a commit. It never waits for the disk: if too many commits wait, the entry is
// lost, and if too much content does, the content of the fragment is not known until its
// next snapshot.
func (r *Recorder) Record(c *Commit) {
	if !r.Enabled() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(c)
	switch {
	case len(r.items) >= groupSize || r.weight >= groupWeight:
		r.hurry(0)
	case c.Patient:
		r.hurry(patience)
	default:
		r.hurry(interval)
	}
}

// add queues a commit. The lock is held.
func (r *Recorder) add(c *Commit) {
	if r.gap != nil || len(r.items) >= maxWaiting {
		r.lose(c)
		return
	}
	if r.weight+c.weight() > maxWeight {
		c.forgetContent()
	}
	r.weight += c.weight()
	r.items = append(r.items, c)
}

// hurry has what waits written after d at the latest. The lock is held.
func (q *queue) hurry(d time.Duration) {
	if due := time.Now().Add(d); due.Before(q.due) {
		q.due = due
		select {
		case q.nudge <- struct{}{}:
		default:
		}
	}
}

func (c *Commit) weight() (n int) {
	for i := range c.Changes {
		n += c.Changes[i].Weight
	}
	return n
}

// forgetContent drops the content of a commit.
func (c *Commit) forgetContent() {
	for i := range c.Changes {
		c.Changes[i].Snapshot, c.Changes[i].Patch, c.Changes[i].Weight = nil, nil, 0
	}
}

// lose joins a commit, or the gap of several, with the others that are lost.
func (r *Recorder) lose(c *Commit) {
	c.forgetContent()
	lost := c.Revision.GetLost()
	if lost == 0 {
		lost = 1
		r.cfg.Lost(1)
	}
	if r.gap == nil {
		r.gap = &Commit{}
	}
	known := r.gap.Revision
	r.gap.Revision, c.Revision.Lost = c.Revision, known.GetLost()+lost
	changed := make(map[desired.Key]bool)
	for _, ch := range c.Changes {
		changed[ch.Fragment] = true
	}
	r.gap.Changes = append(slices.DeleteFunc(r.gap.Changes, func(ch Change) bool { return changed[ch.Fragment] }), c.Changes...)
	for _, f := range known.GetFragments() {
		if !changed[desired.Key{Publisher: f.GetFragment().GetPublisher(), Name: f.GetFragment().GetName()}] {
			c.Revision.Fragments = append(c.Revision.Fragments, f)
		}
	}
}

// Flush waits until the commits that were recorded before are written.
//
// Possible errors: ErrDisabled, ErrUnavailable, ctx's.
func (r *Recorder) Flush(ctx context.Context) error {
	if !r.Enabled() {
		return ErrDisabled
	}
	done := make(chan error, 1)
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return fmt.Errorf("%w: weft stops", ErrUnavailable)
	}
	r.flushes = append(r.flushes, done)
	r.hurry(0)
	r.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run opens the database and writes commits until ctx ends, and then those that are left.
func (r *Recorder) Run(ctx context.Context) {
	if !r.Enabled() {
		return
	}
	defer r.close()
	for ctx.Err() == nil {
		r.writeAll()
		r.await(ctx)
	}
	r.writeAll()
}

// await waits until what is queued is due.
func (r *Recorder) await(ctx context.Context) {
	for {
		r.mu.Lock()
		wait := time.Until(r.due)
		r.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-r.nudge:
		case <-time.After(wait):
			return
		}
	}
}

// take returns what is queued, and who waits for it.
func (r *Recorder) take() (items []*Commit, flushes []chan error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	items, flushes = r.items, r.flushes
	if r.gap != nil {
		items = append(items, r.gap)
	}
	r.items, r.flushes, r.gap, r.weight, r.due = nil, nil, nil, 0, time.Now().Add(never)
	return items, flushes
}

// writeAll writes what is queued, in one transaction.
func (r *Recorder) writeAll() {
	items, flushes := r.take()
	err := r.write(items)
	r.report(err)
	if err != nil {
		r.requeue(items)
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for _, done := range flushes {
		done <- err
	}
}

// requeue puts commits back, before those that were queued since.
func (r *Recorder) requeue(items []*Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	items = append(items, r.items...)
	if r.gap != nil {
		items = append(items, r.gap)
	}
	r.items, r.gap, r.weight = nil, nil, 0
	for _, c := range items {
		r.add(c)
	}
	r.hurry(r.cfg.Retry)
}

// report logs the first failure and the end of failures.
func (r *Recorder) report(err error) {
	r.mu.Lock()
	before := r.failing
	r.failing = err
	r.mu.Unlock()
	switch {
	case err != nil:
		r.cfg.Failed()
		if before == nil {
			r.cfg.Logger.Error("history is not recorded: commits go on", "error", err, "retry", r.cfg.Retry)
		}
	case before != nil:
		r.cfg.Logger.Info("history is recorded again")
	}
}

// Failing returns why the history could not be written; nil if it could.
func (r *Recorder) Failing() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failing
}

// close closes the database and answers who waits.
func (r *Recorder) close() {
	r.mu.Lock()
	r.closed = true
	flushes := r.flushes
	r.flushes = nil
	r.mu.Unlock()
	for _, done := range flushes {
		done <- fmt.Errorf("%w: weft stops", ErrUnavailable)
	}
	if db := r.db.Swap(nil); db != nil {
		if err := db.Close(); err != nil {
			r.cfg.Logger.Error("history is not closed", "error", err)
		}
	}
}
