package aggregator

import "github.com/weft-proxy/weft/aggregator/admission"

// applyWithin applies an update to the state, within the limits of its publisher.
//
// Possible errors: those of desired.State.Apply, *RejectedError.
func (w *writer) applyWithin(s *submission) error {
	p := w.cfg.Access.Publisher(s.key().Publisher)
	if p == nil || s.stored || s.withdraws() {
		return w.state.Apply(s.update)
	}
	return w.state.ApplyWithin(s.update, admission.OverLimit(p, s.key()))
}
