package aggregator

import (
	"context"
	"sync/atomic"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/events"
	"github.com/weft-proxy/weft/aggregator/findings"
	"github.com/weft-proxy/weft/aggregator/history"
	"github.com/weft-proxy/weft/aggregator/status"
	"github.com/weft-proxy/weft/aggregator/unconfirmed"
)

// Reader selects the publishers whose content a reader sees.
type Reader = desired.Reader

// Reads answers readers: from the status of fragments and publishers, from the history, and from the
// writer between two commits. It is safe for concurrent use.
type Reads struct {
	life        *Life
	cfg         *Config
	statuses    *status.Fragments
	roster      *status.Publishers
	unconfirmed *unconfirmed.Keeper
	inspector   *findings.Inspector
	history     *history.Recorder
	hub         *events.Hub
	// scope has the declarations for admission.
	scope *atomic.Pointer[desired.Scope]
	// requests are functions that the writer calls between two commits.
	requests chan func(*writer)
	// liveDump is held by the call that reads live values.
	liveDump chan struct{}
}

func newReads(a *Aggregator) *Reads {
	return &Reads{
		life: a.Life, cfg: &a.cfg, statuses: a.statuses, roster: a.roster, unconfirmed: a.unconfirmed, inspector: a.inspector,
		history: a.history, hub: a.hub, scope: &a.scope, requests: a.requests, liveDump: make(chan struct{}, 1),
	}
}

// ask calls f on the writer's goroutine between two commits and returns after f. Values that f copies
// must not be changed. The caller converts them to messages, because commits wait for f.
// Possible errors: ErrStandby, ErrStopped, ctx's.
func (rs *Reads) ask(ctx context.Context, f func(*writer)) error {
	if err := rs.life.Healthy(); err != nil {
		return err
	}
	done := make(chan struct{})
	select {
	case rs.requests <- func(w *writer) {
		defer close(done)
		f(w)
	}:
	case <-rs.life.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	<-done
	return nil
}
