package aggregator

import "context"

// ask has the writer call f between two commits and returns when it has. What f
// takes along must not be changed, and putting it into words is for afterwards:
// the writer has commits to make.
//
// Possible errors: ErrStandby, ErrStopped, ctx's.
func (a *Aggregator) ask(ctx context.Context, f func(*writer)) error {
	if err := a.condition(); err != nil {
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
