package retry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestTask has a function that fails twice: the calls come when they are due, after errors with the pause
// of Config.Retry, and at once if somebody waits.
func TestTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const retry = 10 * time.Second
		broken := errors.New("broken")
		outcomes := []error{nil, broken, broken, errors.New("still"), nil, nil}
		began, failed := time.Now(), 0
		var calls []time.Duration
		var log bytes.Buffer
		task := New(Config{
			Retry: retry, Failing: "it fails", Again: "it works again", Failed: func() { failed++ }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Do: func(context.Context) error {
				calls = append(calls, time.Since(began))
				return outcomes[len(calls)-1]
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); task.Run(ctx, ctx) }()
		pass := func(d time.Duration) { <-time.After(d); synctest.Wait() }

		pass(time.Hour)
		task.Wake(time.Minute)
		task.Wake(time.Second)
		task.Wake(time.Hour)
		pass(time.Second)
		if task.Err() != nil {
			t.Errorf("failing %v", task.Err())
		}
		task.Wake(0)
		pass(time.Second)
		if !errors.Is(task.Err(), broken) {
			t.Errorf("failing %v, want %v", task.Err(), broken)
		}
		// There is more work: it waits for the pause.
		task.Wake(0)
		pass(retry)
		// A caller that waits does not.
		result := make(chan error, 1)
		task.Await(func(err error) { result <- err })
		if err := <-result; err == nil || err.Error() != "still" {
			t.Errorf("result %v", err)
		}
		pass(time.Hour)
		want := []time.Duration{time.Hour + time.Second, time.Hour + time.Second, time.Hour + time.Second + retry, time.Hour + 2*time.Second + retry, time.Hour + 2*time.Second + 2*retry}
		if !slices.Equal(calls, want) {
			t.Errorf("calls at %v, want %v", calls, want)
		}
		if n := strings.Count(log.String(), "it fails"); n != 2 || failed != 3 || strings.Count(log.String(), "it works again") != 1 || task.Err() != nil {
			t.Errorf("%d failures, failing %v, log\n%s", failed, task.Err(), log.String())
		}
		stop()
		<-done
		task.Wake(0)
		pass(time.Hour)
		if len(calls) != len(want) {
			t.Error("called after the end")
		}
	})
}

// TestRest has a function whose calls rest in proportion to their time.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var calls []time.Duration
		took := time.Minute
		task := New(Config{Retry: time.Second, Rest: 50, Do: func(context.Context) error {
			calls = append(calls, time.Since(began))
			<-time.After(took)
			took = 0
			return nil
		}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); task.Run(ctx, ctx) }()
		task.Wake(0)
		for _, d := range []time.Duration{2 * time.Minute, 49 * time.Minute, time.Second} {
			<-time.After(d)
			synctest.Wait()
			task.Wake(0)
		}
		stop()
		<-done
		if want := []time.Duration{0, 51 * time.Minute, 51*time.Minute + time.Second}; !slices.Equal(calls, want) {
			t.Errorf("calls at %v, want %v", calls, want)
		}
	})
}
