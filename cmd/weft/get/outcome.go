package get

import (
	"fmt"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/frontends/publish"
)

const aboutState = `STATE is "in force" if a commit has what is shown; "wanted" if none has it yet;
"refused" if the aggregator rejects it; or "left out" if no rules can be made of it.
REVISION is the commit since which it is in force, or, unless it is in force, since
which an older value is; "-" is none since the frontend started.`

const (
	stateWanted  = "wanted"
	stateInForce = "in force"
)

func lastRevision[T any](all []T, of func(T) uint64) (last uint64) {
	for _, v := range all {
		last = max(last, of(v))
	}
	return last
}

func revision(n, last uint64) string {
	if n == 0 {
		return "-"
	}
	return cli.ShortRevision(n, last)
}

type waiting struct {
	names   map[string][]string
	reasons []string
}

// add keeps wanted objects for a shared note: while the aggregator is away, all have the same reason.
func (w *waiting) add(t *Rows, name string, v *publish.OutcomeRow) {
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
			retry = fmt.Sprintf(" (tried again at %s)", v.Retry.Local().Format(time.TimeOnly))
		}
		t.note("%s is %s%s: %s", name, v.State, retry, v.Reason)
	}
}

func (w *waiting) note(t *Rows) {
	for _, why := range w.reasons {
		t.note("wanted and not committed: %s: %s", cli.Some(w.names[why]), why)
	}
}
