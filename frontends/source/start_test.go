package source_test

import (
	"context"
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
		early, late := 0, 0
		for range 200 {
			d := begins(func(context.Context) bool { return true })
			switch {
			case d >= source.StartSpread:
				t.Errorf("a restarted process waits for %v", d)
			case d < source.StartSpread/2:
				early++
			default:
				late++
			}
		}
		// 200 halves: less than 60 of one kind has a probability of 10^-8.
		if early < 60 || late < 60 {
			t.Errorf("%d begin in the first half of %v, %d in the second", early, source.StartSpread, late)
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
