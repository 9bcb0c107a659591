package services

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// TestMinSyncPeriod publishes the first change after a quiet time at once, and what
// comes soon after it together, no earlier than the period allows.
//
// Behaviour: 135.
func TestMinSyncPeriod(t *testing.T) {
	const period = time.Second
	fake := newFake(t)
	src := newScript(many(1)...)
	f, _ := runAt(t, Config{Source: src, Socket: fake.Socket}, period)
	await(t, "the first commit", func() bool { return f.Status().Published && f.Status().Pending.IsZero() })
	first := f.Status()
	await(t, "a quiet time", func() bool { return time.Since(first.Acknowledged) > period })

	sent := time.Now()
	src.deliver(many(2)[2:]...)
	await(t, "the change", func() bool { return f.Status().Revision == first.Revision+1 })
	second := f.Status()
	if took := second.Acknowledged.Sub(sent); took >= period {
		t.Errorf("the first change after a quiet time took %v", took)
	}
	// A burst of batches, each by itself.
	for i := range 50 {
		name := fmt.Sprintf("burst%d", i)
		src.deliver(setService(name, 0, fmt.Sprintf("10.96.1.%d", i+1)), setSlice(name, ipv4, fmt.Sprintf("10.244.1.%d", i+1)))
	}
	await(t, "the burst", func() bool { return len(strings.Fields(fake.served())) == 52 && f.Status().Pending.IsZero() })
	third := f.Status()
	if n := third.Revision - second.Revision; n != 1 {
		t.Errorf("a burst of 50 changes made %d updates", n)
	}
	// An acknowledgement is noted a little after it came.
	if gap := third.Acknowledged.Sub(second.Acknowledged); gap < period-10*time.Millisecond {
		t.Errorf("the burst was committed %v after the one before, want at least %v", gap, period)
	}
}

// TestEventToCommit measures from the arrival of the oldest event to the commit, also
// where the first attempts fail, and nothing for events without an outcome.
func TestEventToCommit(t *testing.T) {
	fake, clock := newFake(t), publishtest.NewClock()
	src := &script{batches: make(chan []any, 100)}
	seen := make(chan float64, 10)
	f, err := New(Config{Source: src, NodeName: "node-1", Socket: fake.Socket, Now: clock.Now, MinSyncPeriod: -1})
	must(t, err)
	f.metrics.Latency = prometheus.ObserverFunc(func(v float64) { seen <- v })
	start(t, f)
	src.deliver(many(2)...)
	await(t, "the events", func() bool { return !f.Status().Pending.IsZero() })
	// Before everything is known nothing can be published: it counts from then.
	clock.Move(time.Hour)
	src.deliver(allKnown{})
	await(t, "the first commit", func() bool { return f.Status().Published && f.Status().Pending.IsZero() })
	src.deliver(many(2)...)
	await(t, "the events without an outcome", func() bool { return f.Status().Pending.IsZero() && len(src.batches) == 0 })
	fake.Stop()
	src.deliver(many(3)...)
	await(t, "the event", func() bool { return !f.Status().Pending.IsZero() })
	clock.Move(7 * time.Second)
	src.deliver(many(4)...)
	fake.Start(t)
	await(t, "all Services", func() bool { return fake.served() == all(4) && f.Status().Pending.IsZero() })
	if first, second := <-seen, <-seen; first != 0 || second != 7 {
		t.Errorf("observed %v, then %v", first, second)
	}
	// The later event is in the same update, or in one of its own.
	if more := len(seen); more > 1 {
		t.Errorf("%d more observations", more)
	}
}
