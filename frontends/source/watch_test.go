package source

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// TestEndingClock waits no longer than its context lives.
func TestEndingClock(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := endingClock{ctx: ctx}
	select {
	case <-c.After(time.Millisecond):
	case <-time.After(10 * time.Second):
		t.Error("a wait does not end")
	}
	long := c.After(time.Hour)
	select {
	case <-long:
		t.Error("a wait ends at once")
	default:
	}
	cancel()
	select {
	case <-long:
	case <-time.After(10 * time.Second):
		t.Error("a wait survives its context")
	}
}

// TestBackoffIsBounded tests that the waits are those of client-go: they grow to 30 s, and
// as much again at random.
func TestBackoffIsBounded(t *testing.T) {
	next := backoff(retryFirst).DelayWithReset(clock.RealClock{}, time.Hour)
	var all []time.Duration
	for range 1000 {
		all = append(all, next())
	}
	if all[0] < retryFirst || all[0] > 2*retryFirst {
		t.Errorf("first wait %v", all[0])
	}
	if retryMost != 30*time.Second || slices.Min(all[20:]) == slices.Max(all[20:]) {
		t.Errorf("after many failures all waits are %v", all[20])
	}
	for i, d := range all {
		if d > 2*retryMost || i > 10 && d < retryMost {
			t.Fatalf("wait %d is %v", i, d)
		}
	}
}
