package access

import (
	"sync"
	"time"
)

// between log lines about the same refusal of a publisher
const repeatEvery = time.Minute

// Repeats limits log lines to one a minute for each publisher and reason. Callers must bound these
// pairs: each has a record. It is safe for concurrent use.
type Repeats struct {
	report func(publisher, reason string, withheld int)

	mu      sync.Mutex
	records map[[2]string]*repeated
	closed  bool
}

type repeated struct {
	logged  time.Time
	skipped int
	// reports the skipped lines, or nil
	timer *time.Timer
}

// NewRepeats returns a Repeats. It calls report, on its own goroutine and in Close, if lines were
// skipped for a minute and no later line has logged their number.
func NewRepeats(report func(publisher, reason string, withheld int)) *Repeats {
	return &Repeats{report: report, records: make(map[[2]string]*repeated)}
}

// Log reports whether a line may be logged now, and the number of skipped lines since the last.
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

func (r *repeated) take() int {
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	skipped := r.skipped
	r.skipped = 0
	return skipped
}

// Close reports the skipped lines. Afterwards every line may be logged.
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
