package cyclonus

import (
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// detector shows that a stream detects an opening, made by emptying a base chain until weft repairs it,
// and a loss, made by a rule that briefly drops packets.
func detector(t *testing.T, w *world, s *streamer, g *policytest.Generator) {
	p := newPlan(g, 0, streamable(w.places))
	if len(p.denied) == 0 || len(p.allowed) == 0 {
		t.Fatalf("%d flows are denied and %d allowed, want some", len(p.denied), len(p.allowed))
	}
	tests := []struct {
		name string
		// arguments of nft on each node
		harm, heal [][]string
		passed     bool
	}{
		{"opening", [][]string{{"flush", "chain", "ip", "weft-policy", "forward"}}, nil, true},
		{"loss", [][]string{
			{"add", "table", "inet", "block"},
			{"add", "chain", "inet", "block", "forward", "{ type filter hook forward priority 0; }"},
			{"add", "rule", "inet", "block", "forward", "th", "sport", "20000-29999", "drop"},
		}, [][]string{{"delete", "table", "inet", "block"}}, false},
	}
	nft := func(commands [][]string) {
		t.Helper()
		for _, node := range w.lab.Nodes {
			for _, args := range commands {
				if _, err := node.Run(t.Context(), "nft", args...); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, test := range tests {
		stream, err := s.start(t.Context(), p.allowed, p.denied)
		if err != nil {
			t.Fatal(err)
		}
		// While weft runs, no other program can change its tables.
		for _, d := range w.daemons {
			if err := d.stop(true); err != nil {
				t.Fatal(err)
			}
		}
		nft(test.harm)
		<-time.After(pause)
		nft(test.heal)
		for _, d := range w.daemons {
			if err := d.start(); err != nil {
				t.Fatal(err)
			}
		}
		w.converge(t, g.Cluster)
		f, wrong, _, err := stream.stop(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d of %d packets passed, %d of %d were lost", test.name, f.passed, f.denied, f.lost, f.allowed)
		if (f.passed > 0) != test.passed || (f.lost > 0) == test.passed || len(wrong) == 0 {
			t.Errorf("%s: not seen, or something else was: %v", test.name, wrong[:min(len(wrong), 5)])
		}
	}
}
