package aggregator

import (
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/aggregator/statedir"
)

// lapseInterval is how often elements that expire are forgotten while nothing else happens.
const lapseInterval = 250 * time.Millisecond

// elapsed is the time since the writer began, by a clock that does not jump.
func (w *writer) elapsed() time.Duration { return w.cfg.Now().Sub(w.began) }

// lapsing returns a channel that receives when an element may have expired; nil if none does.
func (w *writer) lapsing() <-chan time.Time {
	at, ok := w.state.NextExpiry()
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
		w.state.Accept()
		return
	}
	if _, err := w.carryOut(w.state.Plan()); err != nil {
		w.drift = err.Error()
		w.log.Warn("cannot add an element that another fragment states too, after it expired", "error", err)
	}
	w.statuses.Revision.Store(w.revision)
}

// forget forgets the elements that have expired. It reports whether there is something to commit.
func (w *writer) forget() (successor bool) {
	expired, successor := w.state.Expire(w.elapsed())
	for _, u := range expired {
		w.statuses.Lapsed(w.state, u.Fragment)
		if f, ok := w.state.Fragment(u.Fragment); ok && f.Lifetime == desired.LifetimeDurable {
			w.dir.Store(statedir.Change{Fragment: u.Fragment, Patch: func() *weftv1.Patch { return message.Patch(u, time.Time{}) }, Done: func(error) {}})
		}
	}
	return successor
}
