package status

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

func TestRosterReport(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewPublishers(func() time.Time { return now })
	first, second := &Session{Publisher: "a", PID: 2, UID: 7}, &Session{Publisher: "a", PID: 1}
	r.Join(first)
	now = now.Add(time.Second)
	r.Join(second)
	first.Pending.Add(3)
	for _, publisher := range []string{"a", "a", "quiet", "unseen"} {
		r.Committed(publisher)
	}
	now = now.Add(time.Second)
	r.Rejected(&admission.RejectedError{Fragment: desired.Key{Publisher: "a", Name: "f"}, Violations: []*weftv1.Violation{{Message: "no"}}})
	all := map[string]*weftv1.PublisherStatus{"quiet": {Name: "quiet", Fragments: 1}}
	r.Report(all)
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
	r.Leave(first)
	r.Leave(second)
	all = map[string]*weftv1.PublisherStatus{}
	r.Report(all)
	if len(all) != 0 {
		t.Errorf("publishers %v: want none, because no publisher is connected", all)
	}
}

// TestGone misses a publisher that stays away after a session that lasted.
func TestGone(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewPublishers(func() time.Time { return now })
	pass := func(d time.Duration) { now = now.Add(d) }
	check := func(want map[string]time.Duration) {
		t.Helper()
		if diff := cmp.Diff(want, r.Gone()); diff != "" {
			t.Errorf("gone (-want +got):\n%s", diff)
		}
	}
	none := map[string]time.Duration{}
	s, brief := &Session{Publisher: "a"}, &Session{Publisher: "brief"}
	r.Join(s)
	r.Join(brief)
	pass(time.Second)
	r.Leave(brief)
	pass(steady)
	r.Leave(s)
	check(none)
	pass(absence)
	check(map[string]time.Duration{"a": absence})
	r.Join(s)
	check(none)
	// One that does not get far is still missed.
	pass(time.Second)
	r.Leave(s)
	pass(time.Minute)
	check(map[string]time.Duration{"a": time.Minute})
}

func TestRosterIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewPublishers(func() time.Time { return now })
	stays := &Session{Publisher: "connected"}
	r.Join(stays)
	for i := range 3 * maxRecords {
		now = now.Add(time.Second)
		r.Rejected(&admission.RejectedError{Fragment: desired.Key{Publisher: fmt.Sprintf("p%d", i), Name: "f"}})
	}
	if len(r.records) != maxRecords || r.records["connected"] == nil || r.records[fmt.Sprintf("p%d", 3*maxRecords-1)] == nil {
		t.Errorf("the roster has %d records: want %d, with those that are connected and the latest", len(r.records), maxRecords)
	}
}
