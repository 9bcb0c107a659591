package client

import "testing"

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
	f.commit(&message{}, 1)
	if f.delay != 0 {
		t.Fatalf("delay %v after a success", f.delay)
	}
}
