package access

import (
	"testing"
	"time"
)

func TestRepeats(t *testing.T) {
	var r Repeats
	start := time.Unix(1e9, 0)
	for _, tt := range []struct {
		after     time.Duration
		publisher string
		skipped   int
		ok        bool
	}{
		{0, "a", 0, true},
		{0, "a", 0, false},
		{0, "b", 0, true},
		{59 * time.Second, "a", 0, false},
		{60 * time.Second, "a", 2, true},
		{61 * time.Second, "a", 0, false},
		{180 * time.Second, "a", 1, true},
		{400 * time.Second, "a", 0, true},
		// The clock was set back.
		{0, "a", 0, true},
		{1 * time.Second, "a", 0, false},
	} {
		skipped, ok := r.Log(tt.publisher, "reason", start.Add(tt.after))
		if skipped != tt.skipped || ok != tt.ok {
			t.Errorf("%s after %v: skipped %d, %v", tt.publisher, tt.after, skipped, ok)
		}
	}
	if _, ok := r.Log("a", "another reason", start); !ok {
		t.Error("another reason is not logged")
	}
}
