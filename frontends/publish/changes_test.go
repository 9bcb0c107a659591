package publish

import (
	"cmp"
	"context"
	"testing"
	"time"
)

// TestChangeSet: of an item the first Old and the last New stay, and a large set does not
// keep its memory.
func TestChangeSet(t *testing.T) {
	var s changeSet[int, int]
	values := [3]int{1, 2, 3}
	for i := range keepRoom + 1 {
		s.add([]Change[int, int]{{Key: i, Old: &values[0], New: &values[1]}, {Key: i, Old: &values[1], New: &values[2]}})
	}
	out := s.take(cmp.Compare[int])
	if len(out) != keepRoom+1 || s.items != nil {
		t.Fatalf("%d changes, want %d; the memory is kept: %t", len(out), keepRoom+1, s.items != nil)
	}
	for i, c := range out {
		if c.Key != i || c.Old != &values[0] || c.New != &values[2] {
			t.Errorf("change %d is %v", i, c)
		}
	}
	if again := s.take(cmp.Compare[int]); len(again) != 0 {
		t.Errorf("%d changes in an empty set", len(again))
	}
}

// TestSoonest: the zero time means never.
func TestSoonest(t *testing.T) {
	early := time.Unix(1_700_000_000, 0)
	late := early.Add(time.Second)
	for _, tt := range [][3]time.Time{{{}, late, late}, {late, early, early}, {early, late, early}} {
		if got := soonest(tt[0], tt[1]); got != tt[2] {
			t.Errorf("soonest of %v and %v is %v", tt[0], tt[1], got)
		}
	}
}

// TestRunEndsBeforeReady: a publisher that ends before everything is known needs no
// aggregator.
func TestRunEndsBeforeReady(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := &Publisher[string, string]{cfg: Config[string, string]{Ready: make(chan struct{})}}
	if err := p.Run(ctx); err != nil {
		t.Error(err)
	}
}
