package get

import (
	"fmt"
	"strings"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/publish/outcomepb"
)

// outcomeView says in JSON and YAML whether an object is in force.
type outcomeView struct {
	// "wanted", "in force", "refused" or "left out"; "unknown" for a frontend of an earlier version
	State string `json:"state"`
	// the commit and the time of the value in force, which is older unless State is "in force"
	Revision uint64    `json:"revision,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// why the present value is not in force, and the time of the next try
	Reason string    `json:"reason,omitempty"`
	Retry  time.Time `json:"retry,omitzero"`
}

const aboutState = `STATE is "in force" if a commit has what is shown; "wanted" if none has it yet;
"refused" if the aggregator rejects it; or "left out" if no rules can be made of it.
REVISION is the commit since which it is in force, or, unless it is in force, since
which an older value is; "-" is none since the frontend started.`

const (
	stateWanted  = "wanted"
	stateInForce = "in force"
)

func viewOutcome(m *outcomepb.Outcome) outcomeView {
	v := outcomeView{State: "unknown", Revision: m.GetRevision(), Reason: m.GetReason()}
	if m.GetState() != outcomepb.State_STATE_UNSPECIFIED {
		v.State = strings.ReplaceAll(cli.Word(m.GetState().String(), "STATE_"), "_", " ")
	}
	if m.GetSince() != nil {
		v.Since = m.GetSince().AsTime().Local()
	}
	if m.GetRetry() != nil {
		v.Retry = m.GetRetry().AsTime().Local()
	}
	return v
}

func lastRevision[T any](all []T, outcome func(*T) *outcomeView) (last uint64) {
	for i := range all {
		last = max(last, outcome(&all[i]).Revision)
	}
	return last
}

// revision is short relative to last.
func (v *outcomeView) revision(last uint64) string {
	if v.Revision == 0 {
		return "-"
	}
	return cli.ShortRevision(v.Revision, last)
}

type waiting struct {
	names   map[string][]string
	reasons []string
}

// add records why an object is not in force. Wanted objects share a note, because all have the same reason
// while the aggregator is away.
func (w *waiting) add(t *Rows, name string, v *outcomeView) {
	switch {
	case v.Reason == "":
	case v.State == stateWanted:
		if w.names[v.Reason] == nil {
			w.reasons = append(w.reasons, v.Reason)
		}
		w.names[v.Reason] = append(w.names[v.Reason], name)
	default:
		retry := ""
		if !v.Retry.IsZero() {
			retry = fmt.Sprintf(" (tried again at %s)", v.Retry.Format(time.TimeOnly))
		}
		t.note("%s is %s%s: %s", name, v.State, retry, v.Reason)
	}
}

func (w *waiting) note(t *Rows) {
	for _, why := range w.reasons {
		t.note("wanted and not committed: %s: %s", cli.Some(w.names[why]), why)
	}
}
