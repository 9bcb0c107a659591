package kernel

import (
	"testing"
	"time"
)

// TestCallClock measures a loop in this thread, as a short call and as a long one.
func TestCallClock(t *testing.T) {
	spin := func(c *callClock, n int) time.Duration {
		c.start(n)
		for began := time.Now(); time.Since(began) < 4*shortCall; {
		}
		return c.stop()
	}
	var c callClock
	if took := spin(&c, 1); took != shortCall {
		t.Errorf("a call with a small batch took %v, want %v", took, shortCall)
	}
	// The call before was long, so that this one is measured. Another process may have
	// had most of the time.
	for _, n := range []int{1, shortBatch + 1} {
		if took := spin(&c, n); took <= 0 || took > time.Minute || c.thread == 0 {
			t.Errorf("a call with %d bytes took %v", n, took)
		}
	}
}
