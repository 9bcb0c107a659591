package aggregator

import (
	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// take applies an update to the state, within what its publisher may hold. The
// state counts that, and gives it back with whatever undoes the update.
//
// Possible errors: those of desired.State.Apply, *RejectedError.
func (w *writer) take(s *submission) error {
	p := w.access.Publisher(s.key().Publisher)
	if p == nil || s.stored || s.withdraws() {
		return w.state.Apply(s.update)
	}
	var bad violations
	err := w.state.ApplyWithin(s.update, func(before, after desired.Usage) []desired.Violation {
		for _, r := range overLimit(p, before, after) {
			bad.refused("", r)
		}
		return bad.desired()
	})
	if len(bad.refusals) > 0 {
		return bad.err(s.key())
	}
	return err
}

// overLimit returns the limits that a change exceeds.
func overLimit(p *access.Publisher, before, after desired.Usage) []*access.Refusal {
	var all []*access.Refusal
	for _, l := range []struct {
		limit         access.Limit
		before, after int
	}{
		{access.LimitFragments, before.Fragments, after.Fragments},
		{access.LimitRules, before.Rules + before.Objects, after.Rules + after.Objects},
		{access.LimitElements, before.Elements, after.Elements},
		{access.LimitBytes, before.Bytes, after.Bytes},
	} {
		if r := p.Holds(l.limit, l.before, l.after); r != nil {
			all = append(all, r)
		}
	}
	return all
}

// desired returns the violations in the words of the state.
func (v *violations) desired() []desired.Violation {
	out := make([]desired.Violation, len(v.list))
	for i, w := range v.list {
		out[i] = desired.Violation{Message: w.GetMessage(), Reason: desired.ReasonLimit}
	}
	return out
}
