package get

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatch lists, and then prints what changes: not ages, and a row that is gone once more.
func TestWatch(t *testing.T) {
	type object struct {
		name, state string
		since       time.Time
	}
	rows := func(objects []object, now time.Time) *Rows {
		r := newRows("NAME", "STATE", "AGE")
		for _, o := range objects {
			r.Add(o.name, o.state, now.Sub(o.since).Round(time.Second))
		}
		r.note("%d objects", len(objects))
		return r
	}
	for events, want := range map[bool]string{
		false: "NAME  STATE  AGE\na     new    0s\nb     longer word  3s\na     new          3s\nb     short        5s\n",
		true:  "EVENT  NAME  STATE  AGE\nADDED  a     new    0s\nADDED    b     longer word  3s\nDELETED  a     new          3s\nMODIFIED  b     short        5s\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			states := [][]object{
				{{"a", "new", start}},
				{{"a", "new", start}},
				{{"b", "longer word", start}},
				{{"b", "short", start}},
			}
			asked := 0
			ask := func(context.Context) ([]object, error) {
				if asked++; asked > len(states) {
					return nil, errors.New("no more")
				}
				return states[asked-1], nil
			}
			changes := func(ctx context.Context, changed func()) error {
				for ctx.Err() == nil {
					select {
					case <-ctx.Done():
					case <-time.After(3 * time.Second / 2):
						changed()
					}
				}
				return nil
			}
			var out, notes bytes.Buffer
			err := watch(t.Context(), &out, &notes, events, ask, rows, changes)
			if err == nil || err.Error() != "no more" {
				t.Errorf("ended with %v", err)
			}
			if notes.String() != "1 objects\n" {
				t.Errorf("notes: %q", notes.String())
			}
			if got := out.String(); got != want {
				t.Errorf("printed\n%swant\n%s", got, want)
			}
		})
	}
}

// TestWatchEnds ends with the error of a lost stream, and without one if the user ends it.
func TestWatchEnds(t *testing.T) {
	ask := func(context.Context) (int, error) { return 0, nil }
	rows := func(int, time.Time) *Rows { return newRows("NAME") }
	var out bytes.Buffer
	err := watch(t.Context(), &out, &out, false, ask, rows, func(context.Context, func()) error { return errors.New("lost") })
	if err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("ended with %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := watch(ctx, &out, &out, false, ask, rows, poll); err != nil {
		t.Errorf("ended with %v", err)
	}
}
