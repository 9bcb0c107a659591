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
	// maxWaiting bounds the queued commits.
	maxWaiting = 4096
	// maxWeight bounds their content in bytes.
	maxWeight = 16 * MaxContent
	// interval bounds the wait for other commits, patience the wait of a Patient one.
	interval = time.Second
	patience = 30 * time.Second
	// A group of groupSize commits or groupWeight bytes waits no longer.
	groupSize   = 512
	groupWeight = 2 * MaxContent
)

type queue struct {
	mu     sync.Mutex
	items  []*Commit
	weight int
	// gap joins commits that found the queue full. It follows items.
	gap *Commit
}

// Record queues a commit and never waits: with too many commits the entry is lost, with too much
// content the fragment is unknown until its next snapshot.
func (r *Recorder) Record(c *Commit) {
	if !r.Enabled() {
		return
	}
	r.mu.Lock()
	r.add(c)
	large := len(r.items) >= groupSize || r.weight >= groupWeight
	r.mu.Unlock()
	switch {
	case large:
		r.task.Wake(0)
	case c.Patient:
		r.task.Wake(patience)
	default:
		r.task.Wake(interval)
	}
}

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

func (c *Commit) weight() (n int) {
	for i := range c.Updates {
		n += c.Updates[i].Weight
	}
	return n
}

func (c *Commit) forgetContent() {
	for i := range c.Updates {
		c.Updates[i].Snapshot, c.Updates[i].Patch, c.Updates[i].Weight = nil, nil, 0
	}
}

// lose joins a commit to the gap.
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
	for _, ch := range c.Updates {
		changed[ch.Fragment] = true
	}
	r.gap.Updates = append(slices.DeleteFunc(r.gap.Updates, func(ch Update) bool { return changed[ch.Fragment] }), c.Updates...)
	for _, f := range known.GetFragments() {
		if !changed[desired.Key{Publisher: f.GetFragment().GetPublisher(), Name: f.GetFragment().GetName()}] {
			c.Revision.Fragments = append(c.Revision.Fragments, f)
		}
	}
}

// Flush waits until all earlier commits are written.
//
// Possible errors: ErrDisabled, ErrUnavailable, ctx's.
func (r *Recorder) Flush(ctx context.Context) error {
	if !r.Enabled() {
		return ErrDisabled
	}
	written := make(chan error, 1)
	r.task.Await(func(err error) { written <- err })
	select {
	case err := <-written:
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return err
	case <-r.cfg.Store.Done():
		return fmt.Errorf("%w: weft stops", ErrUnavailable)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Recorder) take() (items []*Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	items = r.items
	if r.gap != nil {
		items = append(items, r.gap)
	}
	r.items, r.gap, r.weight = nil, nil, 0
	return items
}

// requeue puts commits back, before later ones.
func (r *Recorder) requeue(items []*Commit) {
	items = append(items, r.take()...)
	r.mu.Lock()
	defer r.mu.Unlock()
	later := r.items
	r.items, r.weight = nil, 0
	for _, c := range append(items, later...) {
		r.add(c)
	}
}
