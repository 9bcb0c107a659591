package client

import (
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// TestLateRefusalDoesNotCount has the answer to a patch come after a snapshot
// was sent: what was wrong before that is not wrong any more.
func TestLateRefusalDoesNotCount(t *testing.T) {
	for _, reason := range []weftv1.Reason{weftv1.Reason_REASON_TAKEN_OVER, weftv1.Reason_REASON_CONFLICT} {
		r := &RejectedError{Violations: []*weftv1.Violation{{Reason: reason}}}
		f := &fragment{snapshot: 5}
		if again := f.refused(&update{id: 4, patch: &weftv1.Patch{}}, r, false, defaultPace()); again || f.lost != nil || f.dirty {
			t.Errorf("%v of an update before the snapshot: again %v, fragment %+v", reason, again, f)
		}
		f.refused(&update{id: 6, patch: &weftv1.Patch{}}, r, false, defaultPace())
		if f.lost == nil && !f.dirty {
			t.Errorf("%v of an update after the snapshot: fragment %+v", reason, f)
		}
	}
}

// TestRetriesSlowDown has a resync refused again and again.
func TestRetriesSlowDown(t *testing.T) {
	p, f := defaultPace(), &fragment{}
	last := f.delay
	for range 20 {
		f.later(p)
		if f.delay < last || f.delay > p.maxRetry || f.retry.IsZero() {
			t.Fatalf("delay %v after %v", f.delay, last)
		}
		last = f.delay
	}
	if last != p.maxRetry {
		t.Fatalf("delay %v in the end", last)
	}
	for range 100 {
		if d := jitter(p.maxRetry); d > p.maxRetry || d < p.maxRetry*4/5 {
			t.Fatalf("jitter of %v is %v", p.maxRetry, d)
		}
	}
	f.accepted(&update{})
	if f.delay != 0 {
		t.Fatalf("delay %v after a success", f.delay)
	}
}
