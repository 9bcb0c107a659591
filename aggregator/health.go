package aggregator

import (
	"cmp"
	"fmt"
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
	// Grace is the time until Converged stops waiting for them.
	Grace time.Duration
}

// maxMissing is how many publishers a message names.
const maxMissing = 10

// Error names the first publishers, and counts the others.
func (e *MissingError) Error() string {
	named, more := e.Publishers, ""
	if n := len(named) - maxMissing; n > 0 {
		named, more = named[:maxMissing], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("publishers of before the restart have not come back yet (fragments: %d, grace left: %v): %s%s",
		e.Fragments, e.Grace.Round(time.Second), strings.Join(named, ", "), more)
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
	missing.Grace = a.cfg.ReadyGrace - a.cfg.Now().Sub(time.Unix(0, a.began.Load()))
	if missing.Fragments > 0 && missing.Grace > 0 {
		return missing
	}
	// Fragments are adopted at the start alone: there is nothing left to look at.
	a.settled.Store(true)
	return nil
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
