package traffic

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestBeside reads no more often than the schedule allows, and exports the last good read while
// another one runs or fails.
func TestBeside(t *testing.T) {
	now := time.Now()
	block := make(chan struct{})
	var failure error
	r := &beside{now: func() time.Time { return now }, schedule: schedule{every: 10 * time.Second, share: 20, patience: time.Millisecond, timeout: time.Hour}}
	r.read = func(ctx context.Context) error {
		select {
		case <-block:
			return failure
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	latest := func(after time.Duration) (begins bool, err error) {
		now = now.Add(after)
		before := r.begun
		err = r.latest(t.Context())
		return r.begun != before, err
	}
	if begins, err := latest(0); !begins || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("begins is %v, %v: want the wait to end before the first read does", begins, err)
	}
	if begins, err := latest(time.Hour); begins || err == nil {
		t.Errorf("begins is %v, %v: want no second read beside the first", begins, err)
	}
	now = r.begun
	close(block)
	<-r.done
	r.took = time.Second
	for _, step := range []struct {
		after  time.Duration
		begins bool
	}{{0, false}, {19 * time.Second, false}, {time.Second, true}} {
		begins, err := latest(step.after)
		<-r.done
		if err != nil || begins != step.begins {
			t.Errorf("after %v begins is %v, %v", step.after, begins, err)
		}
	}
	failure = errors.New("no aggregator")
	if begins, err := latest(30 * time.Second); err != nil || !begins {
		t.Errorf("begins is %v, %v: want what was read before", begins, err)
	}
	<-r.done
	if _, err := latest(maxAge + time.Second); !errors.Is(err, failure) {
		t.Errorf("%v: want the failure when nothing is new enough", err)
	}
	<-r.done
	block = make(chan struct{})
	if begins, _ := latest(time.Hour); !begins {
		t.Error("no read begins")
	}
	r.end()
	if r.running() {
		t.Error("a read runs after the end")
	}
}
