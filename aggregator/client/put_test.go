package client_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
)

// TestPutSendsTheDifference counts the messages of repeated Puts.
func TestPutSendsTheDifference(t *testing.T) {
	f, ctx := newFake(t), aggregatortest.Context(t)
	var snapshots, patches int
	f.behave(nil, func(_ string, req *weftv1.PublishRequest) verdict {
		switch req.GetUpdate().(type) {
		case *weftv1.PublishRequest_Snapshot:
			snapshots++
		case *weftv1.PublishRequest_Patch:
			patches++
		}
		return verdict{}
	})
	s := startSession(t, f.dial(t), client.SessionConfig{})
	var last uint64
	for i, step := range []struct {
		keys               []string
		snapshots, patches int
	}{
		{[]string{"10.0.0.1", "10.0.0.2"}, 1, 0},
		{[]string{"10.0.0.1", "10.0.0.2"}, 1, 0},
		{[]string{"10.0.0.2", "10.0.0.3"}, 1, 1},
		{[]string{"10.0.0.3", "10.0.0.2"}, 1, 1},
		{nil, 1, 2},
	} {
		p := newPublisher(step.keys...)
		revision, err := s.Put(ctx, p.fragment("list"))
		if err != nil || revision < last || !slices.Equal(f.keys("list"), p.keys()) {
			t.Fatalf("step %d: revision %d after %d, %v, keys %v", i, revision, last, err, f.keys("list"))
		}
		f.mu.Lock()
		if snapshots != step.snapshots || patches != step.patches {
			t.Fatalf("step %d: %d snapshots and %d patches were sent: want %+v", i, snapshots, patches, step)
		}
		f.mu.Unlock()
		last = revision
	}
	// A rejected Put has not happened: the next one is the difference from what was
	// committed.
	f.behave(nil, func(string, *weftv1.PublishRequest) verdict { return verdict{reject: weftv1.Violation_REASON_CONFLICT} })
	if _, err := s.Put(ctx, newPublisher("10.0.0.9").fragment("list")); err == nil {
		t.Fatal("the Put was accepted")
	}
	f.behave(nil, nil)
	if _, err := s.Put(ctx, newPublisher("10.0.0.5").fragment("list")); err != nil || !slices.Equal(f.keys("list"), []string{"10.0.0.5"}) {
		t.Fatalf("%v, keys %v", err, f.keys("list"))
	}
}

// TestPutIsWhatTheAggregatorHas puts random lists, with keys in several spellings:
// after each, a plan of the same fragment finds nothing to do.
func TestPutIsWhatTheAggregatorHas(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	ctx := aggregatortest.Context(t)
	c := d.Dial(t, "tester")
	s := startSession(t, c, client.SessionConfig{})
	keys := []string{"10.0.0.1", "10.0.0.1/32", "10.0.0.2", "10.0.0.3-10.0.0.3", "10.0.0.3", "10.1.0.0/16", "10.1.0.0-10.1.255.255"}
	rapid.Check(t, func(rt *rapid.T) {
		p := newPublisher(rapid.SliceOfDistinct(rapid.SampledFrom(keys), rapid.ID).Draw(rt, "keys")...)
		f := p.fragment("list")
		f.Tables[0].Sets[0].Flags = []string{"interval"}
		if _, err := s.Put(ctx, f); err != nil {
			rt.Fatal(err)
		}
		plan, err := c.Plan(ctx, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{f}})
		if err != nil || len(plan.GetChanges()) > 0 {
			rt.Fatalf("%v: the aggregator has something else: %v", err, plan)
		}
	})
}
