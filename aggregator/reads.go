package aggregator

import (
	"context"

	"github.com/weft-proxy/weft/aggregator/desired"
)

// Reader says whose content a reader sees.
type Reader = desired.Reader

// ask calls f on the writer's goroutine between two commits and returns after
// it. Whatever f copies must not be changed. Converting it to messages is the
// caller's work, because commits wait for f.
// Possible errors: ErrStandby, ErrStopped, ctx's.
func (a *Aggregator) ask(ctx context.Context, f func(*writer)) error {
	if err := a.Healthy(); err != nil {
		return err
	}
	done := make(chan struct{})
	select {
	case a.requests <- func(w *writer) {
		defer close(done)
		f(w)
	}:
	case <-a.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	<-done
	return nil
}
