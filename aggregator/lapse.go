package aggregator

import (
	"time"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/planner"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/aggregator/statedir"
)

// lapseInterval is how often elements that expire are forgotten while nothing else happens.
const lapseInterval = 250 * time.Millisecond

// elapsed is the time since the writer began, by a clock that does not jump.
func (w *writer) elapsed() time.Duration { return w.cfg.Now().Sub(w.began) }

// lapsing returns a channel that receives when an element may have expired; nil if none does.
func (w *writer) lapsing() <-chan time.Time {
	at, ok := w.state.Expiries.NextExpiry()
	if !ok {
		return nil
	}
	w.lapseTimer.Reset(max(at-w.elapsed(), lapseInterval))
	return w.lapseTimer.C
}

// lapse forgets the elements that have expired. If other fragments state them too and have time left, it
// brings theirs to the kernel.
func (w *writer) lapse() {
	if !w.forget() {
		return
	}
	if w.drift != "" {
		// The repair adds them.
		planner.Accept(w.state)
		return
	}
	if _, err := w.carryOut(planner.Make(w.state)); err != nil {
		w.drift = err.Error()
		w.log.Warn("cannot add an element that another fragment states too, after it expired", "error", err)
	}
	w.statuses.revision.Store(w.revision)
}

// forget forgets the elements that have expired. It reports whether there is something to commit.
func (w *writer) forget() (successor bool) {
	expired, successor := w.state.Expire(w.elapsed())
	for _, u := range expired {
		w.statuses.lapsed(w.state, u.Fragment)
		if f, ok := views.Fragment(w.state, u.Fragment); ok && f.Lifetime == desired.LifetimeDurable {
			w.dir.Store(statedir.Change{Fragment: u.Fragment, Patch: func() *weftv1.Patch { return patchMessage(u, time.Time{}) }, Done: func(error) {}})
		}
	}
	return successor
}

// lapsed updates the status of a fragment of which elements have expired.
func (s *statuses) lapsed(state *merge.State, key desired.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := views.Fragment(state, key)
	if old := s.byKey[key]; ok && old != nil {
		st := proto.CloneOf(old)
		st.Elements = uint64(f.Elements) //nolint:gosec // a count
		s.byKey[key] = st
	}
	s.measure(state, key.Publisher, false)
}
