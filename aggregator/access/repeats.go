package access

import (
	"sync"
	"time"
)

// repeatEvery is how often a log has a line about the same refusal of the same publisher:
// often enough to see that it goes on, and 1,440 lines a day if it never ends.
const repeatEvery = time.Minute

// Repeats bounds the lines of a log about what keeps happening: one a minute for each
// publisher and reason. It holds as many records, and at most as many timers, as there were
// pairs, so its callers must bound both. It is safe for concurrent use.
type Repeats struct {
	report func(publisher, reason string, withheld int)

	mu      sync.Mutex
	records map[[2]string]*repeated
	closed  bool
}

// repeated is what is known of one publisher and reason.
type repeated struct {
	logged  time.Time
	skipped int
	// timer reports the skipped lines; nil if there are none.
	timer *time.Timer
}

// NewRepeats returns a Repeats. It calls report if lines were left out for a minute and
// nothing has happened since that would be logged with their number. report is called on a
// goroutine of its own, and by Close.
func NewRepeats(report func(publisher, reason string, withheld int)) *Repeats {
	return &Repeats{report: report, records: make(map[[2]string]*repeated)}
}

// Log reports whether a line may be logged now, and how many were left out since the last.
func (r *Repeats) Log(publisher, reason string, now time.Time) (skipped int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{publisher, reason}
	record := r.records[key]
	if record == nil {
		r.records[key] = &repeated{logged: now}
		return 0, true
	}
	if age := now.Sub(record.logged); age >= 0 && age < repeatEvery && !r.closed {
		record.skipped++
		if record.timer == nil {
			record.timer = time.AfterFunc(repeatEvery-age, func() { r.expire(key) })
		}
		return 0, false
	}
	skipped = record.take()
	record.logged = now
	return skipped, true
}

// expire reports the lines of a record that were left out for a minute.
func (r *Repeats) expire(key [2]string) {
	r.mu.Lock()
	record := r.records[key]
	skipped := record.take()
	if skipped > 0 {
		// The report is the line of the next minute.
		record.logged = record.logged.Add(repeatEvery)
	}
	r.mu.Unlock()
	if skipped > 0 {
		r.report(key[0], key[1], skipped)
	}
}

// take returns the number of lines that were left out, and starts a new count.
func (r *repeated) take() int {
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	skipped := r.skipped
	r.skipped = 0
	return skipped
}

// Close reports what was left out so far. Later, every line may be logged.
func (r *Repeats) Close() {
	r.mu.Lock()
	r.closed = true
	withheld := make(map[[2]string]int)
	for key, record := range r.records {
		if n := record.take(); n > 0 {
			withheld[key] = n
		}
	}
	r.mu.Unlock()
	for key, n := range withheld {
		r.report(key[0], key[1], n)
	}
}
