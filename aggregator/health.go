package aggregator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/status"
)

// Health reports how the node's ruleset differs from the published fragments. It is safe for concurrent
// use.
type Health struct {
	life     *Life
	cfg      *Config
	statuses *status.Fragments
	roster   *status.Publishers
	dir      *statedir.Dir
	settled  atomic.Bool
	// returned is true after all fragments from before the start were back.
	returned atomic.Bool
	// The writer stores both; unsaved is why the record was not stored.
	foreign atomic.Pointer[foreignChanges]
	unsaved atomic.Pointer[error]
}

const maxMissing = 10

func firstOf(names []string) string {
	more := ""
	if n := len(names) - maxMissing; n > 0 {
		names, more = names[:maxMissing], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}

const notBack = "publishers of before the restart have not come back yet (fragments: %d"

// Converged returns nil once updates can be committed and all fragments from before the start are back,
// except fragments of sessions. After Config.ReadyGrace it does not wait for fragments. Possible errors:
// ErrStarting, ErrStandby, ErrStopped.
func (h *Health) Converged() error {
	if s := h.life.phase.Load(); !s.running {
		return cmp.Or(s.err, ErrStarting)
	}
	if h.settled.Load() {
		return nil
	}
	publishers, fragments := h.statuses.Missing()
	if grace := h.cfg.ReadyGrace - h.cfg.Now().Sub(*h.life.began.Load()); fragments > 0 && grace > 0 {
		return fmt.Errorf(notBack+", grace left: %v): %s", fragments, grace.Round(time.Second), firstOf(publishers))
	}
	// Fragments are adopted only at the start.
	h.settled.Store(true)
	return nil
}

// Missing names publishers of fragments in force that are not back since a restart (even after
// Config.ReadyGrace), or have ended their session. It returns nil during the start.
func (h *Health) Missing() error {
	if !h.life.phase.Load().running {
		return nil
	}
	if !h.returned.Load() {
		if publishers, fragments := h.statuses.Missing(); fragments > 0 {
			return fmt.Errorf(notBack+"): %s", fragments, firstOf(publishers))
		}
		h.returned.Store(true)
	}
	var gone []string
	var since time.Duration
	for name, away := range h.roster.Gone() {
		if h.statuses.Holds(name).Fragments > 0 {
			gone, since = append(gone, name), max(since, away)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	slices.Sort(gone)
	return fmt.Errorf("publishers have gone, for %v, and their fragments stay as they are: %s", since.Round(time.Second), firstOf(gone))
}

type foreignChanges struct {
	repaired time.Time
	reason   string
	// unrepaired names the tables that the kernel refuses to repair, or "".
	unrepaired string
}

const driftRecent = time.Minute

// Drift returns an error while the kernel refuses to repair changes by another process, and for a minute
// after a repair.
func (h *Health) Drift() error {
	d := h.foreign.Load()
	switch {
	case d == nil:
		return nil
	case d.unrepaired != "":
		return errors.New(d.unrepaired)
	case d.reason != "" && h.cfg.Now().Sub(d.repaired) < driftRecent:
		return fmt.Errorf("another process changed the tables, which was repaired: %s", d.reason)
	}
	return nil
}

// Stored returns why the state directory lacks committed content.
func (h *Health) Stored() error {
	if err := h.unsaved.Load(); err != nil {
		return *err
	}
	return h.dir.Failing()
}

// Refused names the first fragment not in force as published, with the number of such fragments.
func (h *Health) Refused() error {
	first, n := h.statuses.Refused()
	if n == 0 {
		return nil
	}
	what := "an update was rejected"
	if first.GetState() == weftv1.FragmentStatus_STATE_ORPHANED {
		what = "it is stored but not in force"
	}
	return fmt.Errorf("fragment %s: %s: %s (fragments: %d)", first.GetFragment().Text(), what, first.GetViolations()[0].GetMessage(), n)
}

// Life is the phase of an Aggregator: starting, standby, running or stopped. It is safe for concurrent use.
type Life struct {
	phase atomic.Pointer[phase]
	// began is the time of the first possible commit, or nil.
	began          atomic.Pointer[time.Time]
	ready, stopped chan struct{}
}

// During the start, a phase has no err and is not running.
type phase struct {
	running bool
	err     error
	// over is closed at the end of the phase.
	over chan struct{}
}

func newLife() *Life {
	l := &Life{ready: make(chan struct{}), stopped: make(chan struct{})}
	l.enter(false, nil)
	return l
}

func (l *Life) enter(running bool, err error) {
	before := l.phase.Swap(&phase{running: running, err: err, over: make(chan struct{})})
	if before != nil {
		close(before.over)
	}
}

func (l *Life) run(now time.Time) {
	l.began.Store(&now)
	l.enter(true, nil)
	close(l.ready)
}

// Ready is closed once the kernel's tables are adopted.
func (l *Life) Ready() <-chan struct{} { return l.ready }

// Stopped is closed when Run has returned.
func (l *Life) Stopped() <-chan struct{} { return l.stopped }

// Healthy returns nil while updates are or will be committed, including during the start. Possible errors:
// ErrStandby, ErrStopped.
func (l *Life) Healthy() error { return l.phase.Load().err }

// admitting waits for the adoption of the tables, because updates are compiled against their declarations.
// Possible errors: ErrStandby, ErrStopped, ErrGone (done is closed).
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
