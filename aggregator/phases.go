package aggregator

import "time"

// phases are where the time of a commit went.
type phases struct {
	// wait is how long its oldest update waited for its turn.
	wait time.Duration
	// build is what the merge and the difference took, and the record where it
	// had to be written; kernel is the kernel's part.
	build, kernel time.Duration
}

// phases measures a commit that the kernel has just carried out.
func (w *writer) phases(accepted []*submission, began, built time.Time) phases {
	p := phases{build: built.Sub(began), kernel: w.now().Sub(built)}
	for _, s := range accepted {
		// What the aggregator does by itself was in no queue.
		if !s.queued.IsZero() {
			p.wait = max(p.wait, began.Sub(s.queued))
		}
	}
	return p
}
