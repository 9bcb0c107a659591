package publish

import "time"

// OutcomeRow is an Outcome in rows of local state.
type OutcomeRow struct {
	State string `json:"state"`
	// as in Outcome
	Revision uint64    `json:"revision,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Reason   string    `json:"reason,omitempty"`
	Retry    time.Time `json:"retry,omitzero"`
}

// Row returns the outcome for a row of local state.
func (o *Outcome) Row() OutcomeRow {
	out := OutcomeRow{State: o.State.String(), Revision: o.Revision, Since: o.Since, Retry: o.Retry}
	if o.Reason != nil {
		out.Reason = o.Reason.Error()
	}
	return out
}
