package aggregator

import "time"

// phases has the time that a commit spent in each phase.
type phases struct {
	// wait is how long its oldest update waited for its turn.
	wait time.Duration
	// build is the time of the merge, of the plan and of the record if it was
	// written; kernel is the kernel's time.
	build, kernel time.Duration
}

// phases measures a commit that the kernel has just carried out.
func (w *writer) phases(accepted []*submission, began, built time.Time) phases {
	p := phases{build: built.Sub(began), kernel: w.cfg.Now().Sub(built)}
	for _, s := range accepted {
		// What the aggregator does by itself was in no queue.
		if !s.queued.IsZero() {
			p.wait = max(p.wait, began.Sub(s.queued))
		}
	}
	return p
}
