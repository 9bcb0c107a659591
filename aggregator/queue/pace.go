package queue

import (
	"maps"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxShare limits a publisher to one part in 5 of the writer's time while others are active.
	maxShare = 5
	// activeFor is how long a publisher is active after its last update: publishers that wait for
	// acknowledgements rarely have an update in the queue.
	activeFor = time.Second
	maxPause  = 10 * time.Second
	// slowEvery is the pause after the second slow commit of a limited publisher within slowEvery: fewer
	// than 1 in 100 updates of others then wait for a slow commit.
	slowEvery = 20 * time.Second
	// freeOfCharge is the time of a commit up to which its publisher does not pause.
	freeOfCharge = 20 * time.Millisecond
	// measuredFrom is the Size from which the commit of an update is measured.
	measuredFrom = 256
	// slowFrom is the time from which a commit and its publishers are slow.
	slowFrom = 50 * time.Millisecond
	// maxActive is the number from which idle publishers are forgotten.
	maxActive = 64
)

// pace decides which publishers pause. It charges measured processor time, including the kernel's: form and
// outcome of the updates and other load do not matter.
type pace struct {
	limited     func(publisher string) bool
	byPublisher map[string]*paced
	stopping    bool
}

type paced struct {
	// until ends the pause. slowAt is the time of the last slow commit of a limited publisher.
	active, until, slowAt time.Time
	// slow is true after a slow commit until a fast one: meanwhile updates are committed apart from others.
	slow bool
	// long is true if the last commit took more than freeOfCharge of wall time.
	long bool
}

func newPace(limited func(publisher string) bool) pace {
	return pace{limited: limited, byPublisher: map[string]*paced{}}
}

func (p *pace) of(publisher string) *paced {
	own := p.byPublisher[publisher]
	if own == nil {
		own = &paced{}
		p.byPublisher[publisher] = own
	}
	return own
}

func (p *pace) noteActive(publisher string, now time.Time) {
	p.of(publisher).active = now
	if len(p.byPublisher) > maxActive {
		maps.DeleteFunc(p.byPublisher, func(_ string, o *paced) bool {
			return now.Sub(o.active) > activeFor && !now.Before(o.until) && now.Sub(o.slowAt) > slowEvery
		})
	}
}

func (p *pace) othersActive(publisher string, now time.Time) bool {
	for name, o := range p.byPublisher {
		if name != publisher && now.Sub(o.active) <= activeFor {
			return true
		}
	}
	return false
}

func (p *pace) paced(publisher string, now time.Time) bool {
	return now.Before(p.of(publisher).until) && !p.stopping && p.othersActive(publisher, now)
}

// Meter begins to measure the commit of updates; charge charges their publishers. Reading the processor
// time costs 5 % of a small commit. So Meter reads it only if exact is true, an update has a Size of
// measuredFrom, or the last commit of a publisher was long.
func (q *Queue[U]) Meter(updates []U, exact bool) (charge func()) {
	q.mu.Lock()
	exact = exact || slices.ContainsFunc(updates, func(s U) bool {
		return q.of(s.Publisher()).long || s.Size() >= measuredFrom
	})
	q.mu.Unlock()
	began, used := time.Now(), func() time.Duration { return 0 }
	if exact {
		used = measureThread()
	}
	return func() {
		if took := time.Since(began); exact || took > freeOfCharge {
			q.noteLong(updates, took > freeOfCharge)
		}
		q.charge(updates, used())
	}
}

func (q *Queue[U]) noteLong(updates []U, long bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range updates {
		q.of(s.Publisher()).long = long
	}
}

// charge cannot tell the slow one of several publishers: each commits alone next.
func (q *Queue[U]) charge(updates []U, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	name, one := updates[0].Publisher(), true
	for _, s := range updates {
		other := s.Publisher()
		one = one && other == name
		if took > slowFrom || took <= freeOfCharge {
			q.of(other).slow = took > slowFrom
		}
	}
	if !one || took <= freeOfCharge {
		return
	}
	pause := q.pause(name, took, q.now())
	q.of(name).until = q.now().Add(pause)
	time.AfterFunc(pause, q.wake)
	// The others may cease to be active before.
	time.AfterFunc(min(pause, activeFor), q.wake)
}

// pause is for a commit of the publisher alone.
func (p *pace) pause(publisher string, took time.Duration, now time.Time) time.Duration {
	pause := min((maxShare-1)*took, maxPause)
	if took <= slowFrom || !p.limited(publisher) {
		return pause
	}
	own := p.of(publisher)
	last := own.slowAt
	own.slowAt = now
	if now.Sub(last) < slowEvery {
		return slowEvery
	}
	return pause
}

// Rest returns the pause after a staging step: as long as the step took, or the pause of a commit if it
// took more than twice the expected time.
func (q *Queue[U]) Rest(publisher string, took, expected time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !q.othersActive(publisher, q.now()):
		return 0
	case took <= 2*expected:
		return took
	default:
		return min((maxShare-1)*took, maxPause)
	}
}

// EndPauses ends all present and future pauses.
func (q *Queue[U]) EndPauses() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopping = true
}

// measureThread locks the goroutine to its thread until used is called. The kernel carries out a
// transaction in the sending thread.
func measureThread() (used func() time.Duration) {
	runtime.LockOSThread()
	began := threadTime()
	return func() time.Duration {
		defer runtime.UnlockOSThread()
		return threadTime() - began
	}
}

func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
