package source_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-proxy/weft/frontends/source"
)

// TestStartSpread: restarted processes begin within StartSpread and not at the same moment, new
// ones at once.
func TestStartSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begins := func(restarted func(context.Context) bool) time.Duration {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			k, err := source.NewKube(source.KubeConfig{Server: "http://192.0.2.1", Restarted: restarted})
			if err != nil {
				t.Fatal(err)
			}
			// Without a subscription Run ends when it has begun.
			start := time.Now()
			if err := k.Run(ctx); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		for _, restarted := range []func(context.Context) bool{nil, func(context.Context) bool { return false }} {
			if d := begins(restarted); d != 0 {
				t.Errorf("a new process waits for %v", d)
			}
		}
		// All start at the same moment: how many begin in a tenth of a second at most.
		const processes, tenth = 300, 100 * time.Millisecond
		began := make(map[time.Duration]int)
		for range processes {
			d := begins(func(context.Context) bool { return true })
			if d >= source.StartSpread {
				t.Errorf("a restarted process waits for %v", d)
			}
			began[d/tenth]++
		}
		peak := slices.Max(slices.Collect(maps.Values(began)))
		t.Logf("of %d restarted processes %d begin in the busiest tenth of a second; without the spread all", processes, peak)
		// On average 15; 45 has a probability of less than 10^-8.
		if peak > 45 {
			t.Errorf("%d of %d begin in a tenth of a second", peak, processes)
		}
	})
}

// TestStartEnds: a process that ends does not wait.
func TestStartEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	k, err := source.NewKube(source.KubeConfig{Server: "http://192.0.2.1", Restarted: func(context.Context) bool { cancel(); return true }})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Run(ctx); err != nil {
		t.Fatal(err)
	}
}
