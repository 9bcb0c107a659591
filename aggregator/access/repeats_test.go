package access

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestRepeats(t *testing.T) {
	r := NewRepeats(func(publisher, reason string, withheld int) {
		t.Errorf("%d lines of %s reported without waiting", withheld, publisher)
	})
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

// TestRepeatsThatEnd checks that the number of lines that were left out is reported after a
// minute, even if nothing happens any more.
func TestRepeatsThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type line struct {
			publisher, reason string
			withheld          int
			after             time.Duration
		}
		start := time.Now()
		var got []line
		r := NewRepeats(func(publisher, reason string, withheld int) {
			got = append(got, line{publisher, reason, withheld, time.Since(start)})
		})
		log := func(want bool) {
			t.Helper()
			if skipped, ok := r.Log("a", "limit", time.Now()); ok != want || skipped != 0 {
				t.Errorf("after %v: skipped %d, %t", time.Since(start), skipped, ok)
			}
		}
		log(true)
		<-time.After(10 * time.Second)
		for range 3 {
			log(false)
		}
		r.Log("b", "limit", time.Now())
		<-time.After(51 * time.Second)
		synctest.Wait()
		want := []line{{"a", "limit", 3, time.Minute}}
		if !slices.Equal(got, want) {
			t.Fatalf("reported %v, want %v", got, want)
		}
		// The report was the line of that minute.
		log(false)
		<-time.After(time.Minute)
		synctest.Wait()
		want = append(want, line{"a", "limit", 1, 2 * time.Minute})
		if !slices.Equal(got, want) {
			t.Fatalf("reported %v, want %v", got, want)
		}
		// Nothing was left out since: there is nothing to report.
		<-time.After(5 * time.Minute)
		log(true)
		log(false)
		r.Close()
		want = append(want, line{"a", "limit", 1, time.Since(start)})
		if !slices.Equal(got, want) {
			t.Fatalf("reported %v, want %v", got, want)
		}
		log(true)
		<-time.After(5 * time.Minute)
		synctest.Wait()
		if !slices.Equal(got, want) {
			t.Errorf("reported %v after Close", got)
		}
	})
}
