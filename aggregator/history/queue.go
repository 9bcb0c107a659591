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
	// groupSize and groupWeight are how many commits, and how much content, do not wait any longer.
	groupSize   = 512
	groupWeight = 2 * MaxContent
)

// queue holds the commits that are not written yet.
type queue struct {
	// nudge and urgent have room for one value: Run looks at the whole queue, after interval or at once.
	nudge, urgent chan struct{}
	// late nudges for a Patient commit.
	late *time.Timer

	mu     sync.Mutex
	items  []*Commit
	weight int
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
	if r.gap != nil || len(r.items) >= maxWaiting {
		r.lose(c)
		return
	}
	weight := c.weight()
	if r.weight+weight > maxWeight {
		c.forgetContent()
		weight = 0
	}
	r.weight += weight
	r.items = append(r.items, c)
	switch {
	case len(r.items) >= groupSize || r.weight >= groupWeight:
		wake(r.urgent)
	case !c.Patient:
		wake(r.nudge)
	case len(r.items) == 1:
		r.late.Reset(patience - interval)
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

// wake sends on a channel with room for one value.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
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
	wake(r.urgent)
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
	for {
		var retry <-chan time.Time
		if r.writeAll() != nil {
			retry = time.After(r.cfg.Retry)
		}
		select {
		case <-ctx.Done():
			_ = r.writeAll() // it is reported
			return
		case <-r.urgent:
		case <-retry:
		case <-r.nudge:
			select {
			case <-ctx.Done():
			case <-r.urgent:
			case <-time.After(interval):
			}
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
	r.items, r.flushes, r.gap, r.weight = nil, nil, nil, 0
	return items, flushes
}

// writeAll writes what is queued, in one transaction.
func (r *Recorder) writeAll() error {
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
	return err
}

// requeue puts commits back, before those that were queued since.
func (r *Recorder) requeue(items []*Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	later := r.items
	if r.gap != nil {
		later = append(later, r.gap)
	}
	r.items, r.gap = items, nil
	if len(items) > maxWaiting {
		// take adds a gap to a full queue.
		r.items, r.gap = items[:maxWaiting:maxWaiting], items[maxWaiting]
	}
	for _, c := range items {
		r.weight += c.weight()
	}
	for _, c := range later {
		if r.gap != nil || len(r.items) >= maxWaiting {
			r.lose(c)
			continue
		}
		r.items = append(r.items, c)
	}
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
	r.dbMu.Lock()
	defer r.dbMu.Unlock()
	if r.db == nil {
		return
	}
	if err := r.db.Close(); err != nil {
		r.cfg.Logger.Error("history is not closed", "error", err)
	}
	r.db = nil
}
