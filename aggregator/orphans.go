package aggregator

import (
	"fmt"
	"maps"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/message"
	"github.com/weft-proxy/weft/aggregator/statedir"
)

// An orphan is a durable fragment that the state directory has, and that the configuration
// does not allow when the aggregator starts. It is listed and not in force, until the
// configuration allows it at another start, or the fragment is sent again or deleted.

// withoutPublisher returns the statuses of the stored fragments whose publisher has gone from
// the configuration. Those of administrators under other names never had one.
func (w *writer) withoutPublisher(stored []statedir.Fragment) map[desired.Key]*weftv1.FragmentStatus {
	orphans := make(map[desired.Key]*weftv1.FragmentStatus)
	if w.cfg.Access == nil {
		return orphans
	}
	where := "there is no configuration"
	if file := w.cfg.Access.Policy().File; file != "" {
		where = "it is not in " + file
	}
	for _, f := range stored {
		if publisher := f.Key.Publisher; f.Configured && w.cfg.Access.Publisher(publisher) == nil {
			orphans[f.Key] = orphan(f, []*weftv1.Violation{{
				Reason:  weftv1.Violation_REASON_PERMISSION,
				Message: fmt.Sprintf("publisher %s has gone: %s: configure it and restart weft, or delete the fragment", publisher, where),
			}})
		}
	}
	return orphans
}

// orphan returns the status of an orphan.
func orphan(f statedir.Fragment, violations []*weftv1.Violation) *weftv1.FragmentStatus {
	return &weftv1.FragmentStatus{
		Fragment: message.Name(f.Key), Priority: f.Content.GetPriority(), Lifetime: weftv1.Lifetime_LIFETIME_DURABLE, ExpireTime: f.Content.GetExpireTime(),
		State: weftv1.FragmentStatus_STATE_ORPHANED, Violations: violations,
	}
}

// withdrawOrphans applies withdrawals of the orphans that the kernel still has, as after a
// restart without a reboot. They stay stored.
func (w *writer) withdrawOrphans(orphans map[desired.Key]*weftv1.FragmentStatus) []*submission {
	var withdrawals []*submission
	for _, key := range slices.SortedFunc(maps.Keys(orphans), desired.Key.Compare) {
		w.log.Warn("durable fragment is orphaned: it is not in force", "fragment", key.String(), "reason", orphans[key].GetViolations()[0].GetMessage())
		withdrawals = append(withdrawals, &submission{update: &desired.Update{Fragment: key, Snapshot: true}, stored: true, result: make(chan Result, 1)})
	}
	return w.apply(withdrawals)
}

// isOrphan reports whether a fragment is an orphan.
func (w *writer) isOrphan(key desired.Key) bool {
	return w.statuses.Get(key).GetState() == weftv1.FragmentStatus_STATE_ORPHANED
}
