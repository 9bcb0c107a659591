package traffic

import (
	"context"
	"sync"
	"time"
)

// schedule says how often something is read.
type schedule struct {
	// every is the least time between the starts of two reads, and share is how many times as
	// long as a read has taken there is until the next one.
	every time.Duration
	share int
	// patience is how long a scrape waits for a read that it has begun. timeout ends a read.
	patience, timeout time.Duration
}

// maxAge is for how long what was read is exported while nothing newer is read.
const maxAge = 5 * time.Minute

// beside reads something beside scrapes, because a read can take longer than a scrape may.
type beside struct {
	schedule
	now  func() time.Time
	read func(context.Context) error

	mu    sync.Mutex
	begun time.Time
	// done is closed when the last read has ended; nil before the first one.
	done chan struct{}
	stop context.CancelFunc
	took time.Duration
	// good is when the last read began that had no error.
	good time.Time
	err  error
}

// latest begins a read if it is time to, waits a moment for it, and returns nil if what was
// read is new enough, or else why there is nothing.
func (r *beside) latest(ctx context.Context) error {
	r.mu.Lock()
	now := r.now()
	if !r.running() && (r.done == nil || now.Sub(r.begun) >= max(r.every, time.Duration(r.share)*r.took)) {
		r.begin(now)
	}
	done := r.done
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.good.IsZero() && now.Sub(r.good) <= max(maxAge, time.Duration(2*r.share)*r.took) {
		return nil
	}
	if r.err == nil {
		return ctx.Err() // the first read has not ended
	}
	return r.err
}

// running reports whether a read has not ended.
func (r *beside) running() bool {
	if r.done == nil {
		return false
	}
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

// begin begins a read. The caller holds the lock.
func (r *beside) begin(now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	done := make(chan struct{})
	r.begun, r.done, r.stop = now, done, cancel
	go func() {
		defer close(done)
		defer cancel()
		began := time.Now()
		err := r.read(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.took, r.err = time.Since(began), err
		if err == nil {
			r.good = now
		}
	}()
}

// end ends a read that has not ended.
func (r *beside) end() {
	r.mu.Lock()
	done, stop := r.done, r.stop
	r.mu.Unlock()
	if done != nil {
		stop()
		<-done
	}
}
