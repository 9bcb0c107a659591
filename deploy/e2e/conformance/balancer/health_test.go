package balancer

import "testing"

func TestHealthThreshold(t *testing.T) {
	h := newHealth()
	key := check{service: "a", port: 30000, node: "node-1"}
	for i, step := range []struct{ answer, want bool }{
		{true, false}, {true, true}, {false, true}, {true, true}, {false, true}, {false, false}, {true, false}, {true, true},
	} {
		h.record(key, step.answer)
		if got := h.checks[key].healthy; got != step.want {
			t.Fatalf("after answer %d (%t): healthy = %t, want %t", i, step.answer, got, step.want)
		}
	}
	h.forget("a")
	if len(h.checks) != 0 {
		t.Errorf("after forget: %v", h.checks)
	}
}
