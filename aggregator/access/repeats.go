package access

import (
	"sync"
	"time"
)

// repeatEvery is how often a log has a line about the same refusal of the same publisher:
// often enough to see that it goes on, and 1,440 lines a day if it never ends.
const repeatEvery = time.Minute

// Repeats bounds the lines of a log about what keeps happening: one a minute for each
// publisher and reason. It holds as many records as there were pairs, so its callers must
// bound both. The zero value is ready for use. It is safe for concurrent use.
type Repeats struct {
	mu      sync.Mutex
	records map[[2]string]*repeated
}

// repeated is what is known of one publisher and reason.
type repeated struct {
	logged  time.Time
	skipped int
}

// Log reports whether a line may be logged now, and how many were left out since the last.
func (r *Repeats) Log(publisher, reason string, now time.Time) (skipped int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{publisher, reason}
	record := r.records[key]
	switch {
	case record == nil:
		if r.records == nil {
			r.records = make(map[[2]string]*repeated)
		}
		r.records[key] = &repeated{logged: now}
		return 0, true
	case now.Sub(record.logged) < repeatEvery && !now.Before(record.logged):
		record.skipped++
		return 0, false
	default:
		skipped = record.skipped
		record.logged, record.skipped = now, 0
		return skipped, true
	}
}
