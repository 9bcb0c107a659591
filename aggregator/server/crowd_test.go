package server

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func TestCrowd(t *testing.T) {
	c := newCrowd(5, 3, slog.New(slog.DiscardHandler))
	enter := func(uid uint32, in bool) {
		t.Helper()
		refusal, keep := c.enter(uid)
		if in != (refusal == nil) || !keep || refusal != nil && !errors.Is(refusal, errCrowded) {
			t.Fatalf("uid %d: refusal %v, keep %v: want in %v", uid, refusal, keep, in)
		}
	}
	for range 3 {
		enter(1, true)
	}
	enter(1, false)
	enter(2, true)
	enter(2, true)
	enter(3, false)
	c.leave(1, false)
	enter(3, true)
	c.leave(1, true)
	c.leave(3, true)
	for range maxRefused {
		enter(3, false)
	}
	if refusal, keep := c.enter(3); refusal == nil || keep {
		t.Fatalf("one too many to be told: refusal %v, keep %v", refusal, keep)
	}
	for range maxStreamsPerUser {
		if _, err := c.stream(9); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.stream(9); !errors.Is(err, errCrowded) {
		t.Fatalf("one stream too many: %v", err)
	}
	done, err := c.stream(10)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if _, ok := c.streams[10]; ok {
		t.Fatal("a user without a stream is remembered")
	}
}

func TestUnfinishedSnapshotsAreBounded(t *testing.T) {
	u := newUnfinished()
	half := admission.MaxBytes / 2
	for _, step := range []struct {
		publisher string
		ok        bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", true}, {"c", false}} {
		if err := u.add(step.publisher, half); (err == nil) != step.ok || err != nil && !errors.Is(err, errCrowded) {
			t.Fatalf("%s: %v", step.publisher, err)
		}
	}
	u.remove("a", 2*half)
	if err := u.add("c", half); err != nil {
		t.Fatal(err)
	}
	u.remove("b", 2*half)
	u.remove("c", half)
	if u.total != 0 || len(u.by) != 0 {
		t.Fatalf("left: %d bytes of %v", u.total, u.by)
	}
}

func TestBacklog(t *testing.T) {
	b := (&service{parts: newUnfinished()}).newBacklog("p")
	ctx, cancel := context.WithCancel(t.Context())
	message := func(bytes int, more bool) *weftv1.PublishRequest {
		return &weftv1.PublishRequest{More: more, Update: &weftv1.PublishRequest_Withdraw{Withdraw: string(make([]byte, bytes))}}
	}
	take := func(bytes int, more bool) {
		t.Helper()
		if err := b.take(ctx, message(bytes, more)); err != nil {
			t.Fatal(err)
		}
	}
	take(maxInFlightBytes/2, true)
	take(maxInFlightBytes/4, true)
	if b.parts.by["p"] < maxInFlightBytes/4*3 {
		t.Fatalf("parts of %d bytes", b.parts.by["p"])
	}
	take(maxInFlightBytes/4, false)
	n := b.complete()
	if n < maxInFlightBytes || len(b.parts.by) != 0 {
		t.Fatalf("an update of %d bytes, parts %v", n, b.parts.by)
	}
	taken := make(chan error)
	go func() { taken <- b.take(ctx, message(1, false)) }()
	select {
	case err := <-taken:
		t.Fatalf("a message was taken while too much was in flight: %v", err)
	case b.room <- struct{}{}:
		// Woken for nothing, it waits again.
	}
	b.answered(n)
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	b.answered(-2 * maxInFlightBytes)
	cancel()
	if err := b.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("a wait that was ended: %v", err)
	}
	b.close()
}
