package eval_test

import (
	"math"
	"testing"

	"github.com/weft-proxy/weft/nft/eval"
)

// TestRandomIntervals has one outcome for each interval, with its exact share of the numbers.
func TestRandomIntervals(t *testing.T) {
	for _, tt := range []struct {
		rule string
		want map[uint32]float64
	}{
		{"meta mark set numgen random mod 65536 map { 0-16383 : 1, 16384-65535 : 2 }", map[uint32]float64{1: 0.25, 2: 0.75}},
		// The intervals go past the last number, and the numbers begin in the middle of one.
		{"meta mark set numgen random mod 1000 offset 100 map { 0-199 : 1, 200-70000 : 2 }", map[uint32]float64{1: 0.1, 2: 0.9}},
		// No element has the last number: the rule does not match.
		{"meta mark set numgen random mod 100 map { 0-49 : 1, 50-98 : 2 }", map[uint32]float64{1: 0.5, 2: 0.49, 0: 0.01}},
		{"numgen random mod 65536 vmap { 0-32767 : drop, 32768-65535 : accept }", map[uint32]float64{0: 1}},
	} {
		outcomes, complete, err := eval.Evaluate(filter(t, tt.rule), forwarded(), eval.Host{Route: out})
		if err != nil || !complete {
			t.Errorf("%s: %v, complete %v", tt.rule, err, complete)
			continue
		}
		got := map[uint32]float64{}
		for _, o := range outcomes {
			p, known := o.Probability()
			if o.Verdict == eval.Undecided || !known {
				t.Errorf("%s: %s %q, probability known: %v", tt.rule, o.Verdict, o.Reason, known)
			}
			got[o.Packet.Mark] += p
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: marks %v, want %v", tt.rule, got, tt.want)
		}
		for mark, p := range tt.want {
			if math.Abs(got[mark]-p) > 1e-9 {
				t.Errorf("%s: mark %d has the probability %v, want %v", tt.rule, mark, got[mark], p)
			}
		}
	}
}

// TestRandomIntervalsUndecided has numbers that are more than can be listed.
func TestRandomIntervalsUndecided(t *testing.T) {
	rule := "meta mark set numgen random mod 65536 map { 0-9 : 1 }" // 65,526 numbers without an interval
	outcomes, _, err := eval.Evaluate(filter(t, rule), forwarded(), eval.Host{Route: out})
	if err != nil || len(outcomes) != 1 || outcomes[0].Verdict != eval.Undecided {
		t.Errorf("%s: outcomes %+v, %v, want one that is undecided", rule, outcomes, err)
	}
}
