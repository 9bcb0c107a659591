package aggregator

import (
	"sync/atomic"
	"time"
)

// Life is the phase of an Aggregator: it starts, stands by, runs, or has stopped. It is safe for
// concurrent use.
type Life struct {
	phase atomic.Pointer[phase]
	// began is the time of the first possible commit, nil before that.
	began          atomic.Pointer[time.Time]
	ready, stopped chan struct{}
}

// phase is one phase. During the start, err is nil and running is false.
type phase struct {
	running bool
	// err is why updates cannot be committed; nil if they are or will be.
	err error
	// over is closed when the next phase begins.
	over chan struct{}
}

func newLife() *Life {
	l := &Life{ready: make(chan struct{}), stopped: make(chan struct{})}
	l.enter(false, nil)
	return l
}

// enter begins a phase.
func (l *Life) enter(running bool, err error) {
	before := l.phase.Swap(&phase{running: running, err: err, over: make(chan struct{})})
	if before != nil {
		close(before.over)
	}
}

// run begins the phase in which updates are committed.
func (l *Life) run(now time.Time) {
	l.began.Store(&now)
	l.enter(true, nil)
	close(l.ready)
}

// Ready is closed once the kernel's tables are adopted and updates are being committed.
func (l *Life) Ready() <-chan struct{} { return l.ready }

// Stopped is closed when Run has returned.
func (l *Life) Stopped() <-chan struct{} { return l.stopped }

// Healthy returns nil while updates are committed or will be, as during the start. Otherwise the
// aggregator stands by or has stopped.
// Possible errors: ErrStandby, ErrStopped.
func (l *Life) Healthy() error { return l.phase.Load().err }

// admitting waits until the tables are adopted, so that updates can be compiled against their
// declarations, or until done is closed.
// Possible errors: ErrStandby, ErrStopped, ErrGone.
func (l *Life) admitting(done <-chan struct{}) error {
	for {
		p := l.phase.Load()
		if p.running || p.err != nil {
			return p.err
		}
		select {
		case <-p.over:
		case <-done:
			return ErrGone
		}
	}
}
