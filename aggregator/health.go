package aggregator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Healthy returns nil while updates are committed or will be, as during the start.
// Otherwise the aggregator stands by or has stopped.
// Possible errors: ErrStandby, ErrStopped.
func (a *Aggregator) Healthy() error { return a.stage.Load().err }

// MissingError names the publishers from before a restart that have not come
// back. What they published is still in force.
type MissingError struct {
	// Publishers are their names, ordered.
	Publishers []string
	// Fragments counts theirs that wait.
	Fragments int
	// Grace is the time until Converged stops waiting for them, 0 if it does not wait.
	Grace time.Duration
}

// maxMissing is how many publishers a message names.
const maxMissing = 10

// Error names the first publishers, and counts the others.
func (e *MissingError) Error() string {
	grace := ""
	if e.Grace > 0 {
		grace = fmt.Sprintf(", grace left: %v", e.Grace.Round(time.Second))
	}
	return fmt.Sprintf("publishers of before the restart have not come back yet (fragments: %d%s): %s", e.Fragments, grace, firstOf(e.Publishers))
}

// firstOf names the first of names, and counts the others.
func firstOf(names []string) string {
	more := ""
	if n := len(names) - maxMissing; n > 0 {
		names, more = names[:maxMissing], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}

// Converged returns why the ruleset may differ from what its publishers want now.
// It returns nil once updates are committed and every fragment from before a
// restart is back, except those of sessions. Config.ReadyGrace after the start
// it no longer waits for fragments.
// Possible errors: ErrStarting, ErrStandby, ErrStopped, *MissingError.
func (a *Aggregator) Converged() error {
	if s := a.stage.Load(); !s.running {
		return cmp.Or(s.err, ErrStarting)
	}
	if a.settled.Load() {
		return nil
	}
	missing := a.statuses.missing()
	missing.Grace = a.cfg.ReadyGrace - a.cfg.Now().Sub(*a.began.Load())
	if missing.Fragments > 0 && missing.Grace > 0 {
		return missing
	}
	// Fragments are adopted at the start alone: there is nothing left to look at.
	a.settled.Store(true)
	return nil
}

// Missing returns which publishers are not there although their fragments are in force: those
// from before a restart that have not come back, also after the time for which Converged waits
// for them, and those whose session has ended. It returns nil if there are none, and before the
// first commit.
//
// Possible errors: *MissingError, *GoneError.
func (a *Aggregator) Missing() error {
	if !a.stage.Load().running {
		return nil
	}
	if !a.returned.Load() {
		if missing := a.statuses.missing(); missing.Fragments > 0 {
			return missing
		}
		a.returned.Store(true)
	}
	if e := a.gone(); len(e.Publishers) > 0 {
		return e
	}
	return nil
}

// GoneError names the publishers whose last session has ended. What they published is still in
// force.
type GoneError struct {
	// Publishers are their names, ordered.
	Publishers []string
	// Since is for how long the first of them has been gone.
	Since time.Duration
}

// Error names the first publishers, and counts the others.
func (e *GoneError) Error() string {
	return fmt.Sprintf("publishers have gone, for %v, and their fragments stay as they are: %s",
		e.Since.Round(time.Second), firstOf(e.Publishers))
}

// gone returns the publishers that the roster misses, without those that left nothing behind.
func (a *Aggregator) gone() *GoneError {
	e, left := &GoneError{}, a.roster.gone()
	for name, since := range left {
		if a.statuses.holds(name).Fragments > 0 {
			e.Publishers, e.Since = append(e.Publishers, name), max(e.Since, since)
		}
	}
	slices.Sort(e.Publishers)
	return e
}

// foreignChanges is what is known of changes that other processes made to the kernel's tables.
type foreignChanges struct {
	// repaired is the time of the last repair, and reason what it repaired.
	repaired time.Time
	reason   string
	// unrepaired names the tables that the kernel refuses to repair, "" if there are none.
	unrepaired string
}

// driftRecent is for how long Drift returns a repair.
const driftRecent = time.Minute

// Drift returns an error if the kernel refuses to repair what another process changed, or if
// such a change was repaired less than a minute ago.
func (a *Aggregator) Drift() error {
	d := a.foreign.Load()
	switch {
	case d == nil:
		return nil
	case d.unrepaired != "":
		return errors.New(d.unrepaired)
	case d.reason != "" && a.cfg.Now().Sub(d.repaired) < driftRecent:
		return fmt.Errorf("another process changed the tables, which was repaired: %s", d.reason)
	}
	return nil
}

// Stored returns why the state directory does not have what was committed; nil if it has,
// and without a state directory.
func (a *Aggregator) Stored() error {
	if err := a.unsaved.Load(); err != nil {
		return *err
	}
	return a.dir.Failing()
}

// RefusedError names a fragment that is not in force as its publisher wants.
type RefusedError struct {
	// Fragments counts them. Fragment is the first.
	Fragments int
	Fragment  *weftv1.FragmentStatus
}

// Error names the first fragment and why it is refused, and counts the others.
func (e *RefusedError) Error() string {
	what, more := "an update was rejected", ""
	if e.Fragment.GetState() == weftv1.FragmentStatus_STATE_ORPHANED {
		what = "it is stored but not in force"
	}
	if e.Fragments > 1 {
		more = fmt.Sprintf(" (and %d more fragments)", e.Fragments-1)
	}
	return fmt.Sprintf("fragment %s: %s: %s%s", e.Fragment.GetFragment().Text(), what, e.Fragment.GetViolations()[0].GetMessage(), more)
}

// Refused returns which fragments are not in force as their publishers want: the last update was
// rejected, or the configuration does not allow a stored fragment. It returns nil if there are
// none.
//
// Possible errors: *RefusedError.
func (a *Aggregator) Refused() error {
	a.statuses.mu.RLock()
	defer a.statuses.mu.RUnlock()
	e := &RefusedError{}
	for key, f := range a.statuses.byKey {
		if len(f.GetViolations()) == 0 {
			continue
		}
		if e.Fragments++; e.Fragment == nil || key.Compare(keyOf(e.Fragment.GetFragment())) < 0 {
			e.Fragment = f
		}
	}
	if e.Fragments == 0 {
		return nil
	}
	return e
}

// missing returns the fragments that wait for their publishers.
func (s *statuses) missing() *MissingError {
	e := &MissingError{}
	fragments, _ := s.list()
	for _, f := range fragments {
		if f.GetState() != weftv1.FragmentStatus_STATE_ADOPTED || f.GetLifetime() == weftv1.Lifetime_LIFETIME_SESSION {
			continue
		}
		e.Fragments++
		if n := len(e.Publishers); n == 0 || e.Publishers[n-1] != f.GetFragment().GetPublisher() {
			e.Publishers = append(e.Publishers, f.GetFragment().GetPublisher())
		}
	}
	return e
}
