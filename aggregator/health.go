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

// Health says whether the node's ruleset is what its publishers want. It is safe for concurrent use.
type Health struct {
	life     *Life
	cfg      *Config
	statuses *status.Fragments
	roster   *status.Publishers
	dir      *statedir.Dir
	// settled is true after Converged has returned nil.
	settled atomic.Bool
	// returned is true after all fragments from before the start were back.
	returned atomic.Bool
	// foreign has changes by other processes, nil without any. unsaved is why the record was not
	// stored, nil if it was. The writer stores both.
	foreign atomic.Pointer[foreignChanges]
	unsaved atomic.Pointer[error]
}

// maxMissing limits the publishers in a message.
const maxMissing = 10

// firstOf names the first of names, and counts the others.
func firstOf(names []string) string {
	more := ""
	if n := len(names) - maxMissing; n > 0 {
		names, more = names[:maxMissing], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}

// notBack begins the messages about the publishers from before a restart that have not come back.
const notBack = "publishers of before the restart have not come back yet (fragments: %d"

// Converged returns why the ruleset may differ from what its publishers want now: an error that
// names publishers that have not come back. It returns nil once updates are committed and every
// fragment from before a restart is back, except those of sessions. Config.ReadyGrace after the
// start it no longer waits for fragments.
// Possible errors: ErrStarting, ErrStandby, ErrStopped.
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
	// Fragments are adopted at the start alone: there is nothing left to look at.
	h.settled.Store(true)
	return nil
}

// Missing returns an error that names the publishers that are not there although their fragments
// are in force: those from before a restart that have not come back, also after the time for which
// Converged waits for them, and those whose session has ended. It returns nil if there are none,
// and before the first commit.
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
		// One that left nothing behind is not missing.
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

// foreignChanges describes changes by other processes to the kernel's tables.
type foreignChanges struct {
	// repaired and reason are the time and the reason of the last repair.
	repaired time.Time
	reason   string
	// unrepaired names the tables that the kernel refuses to repair, "" if there are none.
	unrepaired string
}

// driftRecent is the time for which Drift returns a repair.
const driftRecent = time.Minute

// Drift returns an error if the kernel refuses to repair what another process changed, or if
// such a change was repaired less than a minute ago.
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

// Stored returns why the state directory does not have what was committed; nil if it has,
// and without a state directory.
func (h *Health) Stored() error {
	if err := h.unsaved.Load(); err != nil {
		return *err
	}
	return h.dir.Failing()
}

// Refused returns an error that names the first of the fragments that are not in force as their
// publishers want: the last update was rejected, or the configuration does not allow a stored
// fragment. It returns nil if there are none.
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
