package aggregator

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

func TestRosterReport(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRoster(func() time.Time { return now })
	first, second := &Session{publisher: "a", pid: 2, uid: 7}, &Session{publisher: "a", pid: 1}
	r.join(first)
	now = now.Add(time.Second)
	r.join(second)
	first.pending.Add(3)
	update := func(publisher string) *submission {
		return &submission{update: &desired.Update{Fragment: desired.Key{Publisher: publisher, Name: "f"}}}
	}
	r.committed([]*submission{update("a"), update("a"), update("quiet"), update("unseen")})
	now = now.Add(time.Second)
	r.rejected(&RejectedError{Fragment: desired.Key{Publisher: "a", Name: "f"}, Violations: []*weftv1.Violation{{Message: "no"}}})
	all := map[string]*weftv1.PublisherStatus{"quiet": {Name: "quiet", Fragments: 1}}
	r.report(all)
	want := map[string]*weftv1.PublisherStatus{
		"quiet": {Name: "quiet", Fragments: 1, Committed: 1},
		"a": {
			Name: "a", Committed: 2, Rejected: 1,
			LastRejection: &weftv1.Rejection{Fragment: &weftv1.FragmentName{Publisher: "a", Name: "f"}, Violations: []*weftv1.Violation{{Message: "no"}}},
			LastRejected:  timestamppb.New(time.Unix(1002, 0)),
			Sessions: []*weftv1.SessionStatus{
				{Pid: 2, Uid: 7, Since: timestamppb.New(time.Unix(1000, 0)), Pending: 3},
				{Pid: 1, Since: timestamppb.New(time.Unix(1001, 0))},
			},
		},
	}
	if diff := cmp.Diff(want, all, protocmp.Transform()); diff != "" {
		t.Errorf("publishers (-want +got):\n%s", diff)
	}
	r.leave(first)
	r.leave(second)
	all = map[string]*weftv1.PublisherStatus{}
	r.report(all)
	if len(all) != 0 {
		t.Errorf("publishers %v: want none, because no publisher is connected", all)
	}
}

// TestGone misses a publisher that stays away after a session that lasted.
func TestGone(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRoster(func() time.Time { return now })
	pass := func(d time.Duration) { now = now.Add(d) }
	check := func(want map[string]time.Duration) {
		t.Helper()
		if diff := cmp.Diff(want, r.gone()); diff != "" {
			t.Errorf("gone (-want +got):\n%s", diff)
		}
	}
	none := map[string]time.Duration{}
	s, brief := &Session{publisher: "a"}, &Session{publisher: "brief"}
	r.join(s)
	r.join(brief)
	pass(time.Second)
	r.leave(brief)
	pass(steady)
	r.leave(s)
	check(none)
	pass(absence)
	check(map[string]time.Duration{"a": absence})
	r.join(s)
	check(none)
	// One that does not get far is still missed.
	pass(time.Second)
	r.leave(s)
	pass(time.Minute)
	check(map[string]time.Duration{"a": time.Minute})
}

func TestRosterIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRoster(func() time.Time { return now })
	stays := &Session{publisher: "connected"}
	r.join(stays)
	for i := range 3 * maxRecords {
		now = now.Add(time.Second)
		r.rejected(&RejectedError{Fragment: desired.Key{Publisher: fmt.Sprintf("p%d", i), Name: "f"}})
	}
	if len(r.records) != maxRecords || r.records["connected"] == nil || r.records[fmt.Sprintf("p%d", 3*maxRecords-1)] == nil {
		t.Errorf("the roster has %d records: want %d, with those that are connected and the latest", len(r.records), maxRecords)
	}
}
