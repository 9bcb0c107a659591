package aggregator

import "context"

// Alive reports whether the sender of updates is still there to hear the answers.
// Once it is false it stays so. The writer asks for each update, at the time at
// which it applies it, so the answer must come at once.
//
// It keeps a publisher that was killed from overruling its successor: what it
// wrote last may still be in its socket when the successor's first update is
// acknowledged already. The writer is one goroutine, so nothing more is needed:
// what took effect of the predecessor's was applied while it lived, and
// so before anything of a successor that was started after its death.
type Alive func() bool

// aliveKey is the context key of an Alive.
type aliveKey struct{}

// WithAlive returns a copy of ctx that carries alive. An update of Apply, Delete or a
// Session (see [Session.DropAfter]) is dropped with ErrGone if ctx has ended or alive is
// false when the writer applies the update.
func WithAlive(ctx context.Context, alive Alive) context.Context {
	return context.WithValue(ctx, aliveKey{}, alive)
}

// aliveIn returns an Alive for the updates of a call: it is true while the
// call's context and the Alive in it are.
func aliveIn(ctx context.Context) Alive {
	alive, _ := ctx.Value(aliveKey{}).(Alive)
	return func() bool { return ctx.Err() == nil && (alive == nil || alive()) }
}

// DropAfter makes the writer drop updates of the session, with ErrGone, that it has not
// applied when ctx ends. Without it no update is dropped. Call it before the first
// Push.
func (s *Session) DropAfter(ctx context.Context) { s.alive, s.done = aliveIn(ctx), ctx.Done() }

// gone reports whether an update has lost its sender.
func (s *submission) gone() bool { return s.alive != nil && !s.alive() }

// dropGone answers an update without a sender. The update is not wrong, so it
// is not a rejection.
func (w *writer) dropGone(s *submission) {
	w.metrics.dropped.Inc()
	w.log.Debug("dropped an update whose sender is gone", "fragment", s.key().String(), "snapshot", s.update.Snapshot,
		"lifetime", s.update.Lifetime.String())
	s.answer(Result{Err: ErrGone})
}
