package publish

import (
	"strings"
	"testing"

	"github.com/weft-proxy/weft/frontends/publish/publishtest"
)

// TestOutcome follows items through all states: each comes from a commit.
func TestOutcome(t *testing.T) {
	agg, n := publishtest.New(t), newNames()
	agg.Judge(rejects(true, "bad"))
	run(t, n, agg)
	if o := n.p.Outcome("a"); o.State != Wanted || o.Revision != 0 {
		t.Errorf("before the start: %+v", o)
	}
	n.want(map[string]string{"a": "1", "b": "bad"})
	await(t, "an item", func() bool { return n.p.Outcome("a").State == InForce })
	first := n.p.Outcome("a")
	if first.Revision == 0 || first.Since.IsZero() || first.Reason != nil {
		t.Errorf("in force: %+v", first)
	}
	if o := n.p.Outcome("b"); o.State != Refused || o.Revision != 0 || !strings.Contains(o.Reason.Error(), "operation not supported") || o.Retry.IsZero() {
		t.Errorf("refused: %+v", o)
	}
	// A repaired item is in force, and the others keep their revision.
	n.want(map[string]string{"b": "2"})
	await(t, "the repaired item", func() bool { return n.p.Outcome("b").State == InForce })
	if o := n.p.Outcome("b"); o.Revision <= first.Revision || o.Reason != nil || !o.Retry.IsZero() || n.p.Outcome("a") != first {
		t.Errorf("in force: %+v and %+v, which was %+v", o, n.p.Outcome("a"), first)
	}
	// While nothing is committed, an older value stays in force.
	agg.Stop()
	n.want(map[string]string{"a": "3"})
	await(t, "the change", func() bool { return n.p.Outcome("a").State == Wanted })
	await(t, "the loss of the aggregator", func() bool { return n.p.Outcome("a").Reason != nil })
	if o := n.p.Outcome("a"); o.Revision != first.Revision {
		t.Errorf("changed, and not committed: %+v", o)
	}
	agg.Start(t)
	await(t, "the commit", func() bool { return n.p.Outcome("a").State == InForce })
	n.want(map[string]string{"a": ""})
	await(t, "the removal", func() bool { return n.p.Outcome("a") == Outcome{} })
}
