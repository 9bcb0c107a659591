package traffic

import (
	"context"
	"sync"
	"time"
)

type schedule struct {
	// every is the minimum time between starts; share is the minimum as a multiple of the last duration.
	every time.Duration
	share int
	// patience bounds a scrape's wait for a read; timeout bounds the read.
	patience, timeout time.Duration
}

// maxAge bounds the age of exported data.
const maxAge = 5 * time.Minute

// beside runs a read beside the scrapes, because it may take too long for one.
type beside struct {
	schedule
	now  func() time.Time
	read func(context.Context) error

	mu    sync.Mutex
	begun time.Time
	// closed after the last read; nil before the first
	done chan struct{}
	stop context.CancelFunc
	took time.Duration
	good time.Time
	err  error
}

// latest begins a read if due and waits briefly.
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
		return ctx.Err() // the first read is still running
	}
	return r.err
}

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

// The caller of begin holds the lock.
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

func (r *beside) end() {
	r.mu.Lock()
	done, stop := r.done, r.stop
	r.mu.Unlock()
	if done != nil {
		stop()
		<-done
	}
}
