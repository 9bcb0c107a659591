package migration

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// absences are the periods in which no weft on a node is ready: between two instances the rules stay.
type absences struct {
	mu    sync.Mutex
	nodes map[*lab.Node]*absence
}

type absence struct {
	over []period
	// the first and the last question without an answer; zero while weft answers
	since, last time.Time
}

type period struct{ from, to time.Time }

// A period lasts from the first to the last failed question, so it is rather too short.
func watchAbsences(ctx context.Context, nodes []*lab.Node) *absences {
	a := &absences{nodes: make(map[*lab.Node]*absence)}
	for _, n := range nodes {
		a.nodes[n] = &absence{}
		go a.watch(ctx, n)
	}
	return a
}

func (a *absences) watch(ctx context.Context, n *lab.Node) {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.note(n, time.Now(), ready(ctx, n.Namespace) == nil)
		}
	}
}

// ready returns nil if weft on a node is ready.
func ready(ctx context.Context, n *lab.Namespace) error {
	answer, err := n.Get(ctx, "http://127.0.0.1:10256/readyz", time.Second)
	if err == nil && answer.Status != http.StatusOK {
		err = fmt.Errorf("weft on %s is not ready: %d", n.Name(), answer.Status)
	}
	return err
}

func (a *absences) note(n *lab.Node, at time.Time, there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.nodes[n]
	switch {
	case !there && s.since.IsZero():
		s.since, s.last = at, at
	case !there:
		s.last = at
	case !s.since.IsZero():
		s.over = append(s.over, period{s.since, s.last})
		s.since, s.last = time.Time{}, time.Time{}
	}
}

// in is the duration without weft on a node between from and to.
func (a *absences) in(n *lab.Node, from, to time.Time) (d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.nodes[n]
	for _, p := range append(s.over[:len(s.over):len(s.over)], period{s.since, s.last}) {
		if p.from.Before(from) {
			p.from = from
		}
		if p.to.After(to) {
			p.to = to
		}
		d += max(0, p.to.Sub(p.from))
	}
	return d
}

// longest is the longest period that began after a time.
func (a *absences) longest(after time.Time) (d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.nodes {
		for _, p := range s.over {
			if p.from.After(after) {
				d = max(d, p.to.Sub(p.from))
			}
		}
	}
	return d
}
