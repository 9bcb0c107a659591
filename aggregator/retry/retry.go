package retry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Config describes a Task.
type Config struct {
	// Do does the pending work. It may call Wake for more.
	Do func(context.Context) error
	// Retry is the time until the next call after an error.
	Retry time.Duration
	// Rest, if not 0, is the least time between calls, in multiples of the last call's time. Retry is
	// its least value.
	Rest   int
	Logger *slog.Logger
	// Failing is logged with each new error. Again, if not empty, is logged with the first success
	// after errors.
	Failing, Again string
	// Failed counts errors, except after the end of the work's context.
	Failed func()
}

// Task calls a function when it is due.
type Task struct {
	cfg   Config
	nudge chan struct{}

	mu sync.Mutex
	// due is zero without work. No call comes before rest.
	due, rest time.Time
	// waiting get the outcome of the next call.
	waiting []func(error)
	err     error
}

// New returns a Task without work.
func New(cfg Config) *Task { return &Task{cfg: cfg, nudge: make(chan struct{}, 1)} }

// Wake makes the Task due after d at the latest.
func (t *Task) Wake(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake(time.Now().Add(d))
}

func (t *Task) wake(at time.Time) {
	if !t.due.IsZero() && !at.Before(t.due) {
		return
	}
	t.due = at
	select {
	case t.nudge <- struct{}{}:
	default:
	}
}

// Await makes the Task due at once, also after an error; done gets the outcome.
func (t *Task) Await(done func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting, t.rest, t.due = append(t.waiting, done), time.Time{}, time.Time{}
	t.wake(time.Now())
}

// Err returns why the last call failed, or nil.
func (t *Task) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// idle is the wait without work.
const idle = 24 * time.Hour

// Run calls the function when due, with the context work, until ctx ends.
func (t *Task) Run(ctx, work context.Context) {
	for {
		timer := time.NewTimer(t.wait())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-t.nudge:
			timer.Stop()
		case <-timer.C:
			t.Call(work)
		}
	}
}

func (t *Task) wait() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.due.IsZero() {
		return idle
	}
	return max(time.Until(t.due), time.Until(t.rest))
}

// Call calls the function now.
func (t *Task) Call(work context.Context) {
	t.mu.Lock()
	waiting := t.waiting
	t.waiting, t.due = nil, time.Time{}
	t.mu.Unlock()
	began := time.Now()
	err := t.cfg.Do(work)
	t.mu.Lock()
	before, now := t.err, time.Now()
	t.err, t.rest = err, time.Time{}
	if err != nil || t.cfg.Rest > 0 {
		t.rest = now.Add(max(t.cfg.Retry, time.Duration(t.cfg.Rest)*now.Sub(began)))
	}
	if err != nil {
		t.wake(now)
	}
	if len(t.waiting) > 0 {
		t.rest = time.Time{}
	}
	t.mu.Unlock()
	t.tell(work, before, err)
	for _, done := range waiting {
		done(err)
	}
}

func (t *Task) tell(work context.Context, before, err error) {
	switch {
	case err == nil:
		if before != nil && t.cfg.Again != "" {
			t.cfg.Logger.Info(t.cfg.Again)
		}
	case work.Err() == nil:
		t.cfg.Failed()
		if before == nil || before.Error() != err.Error() {
			t.cfg.Logger.Error(t.cfg.Failing, "error", err, "retry", t.cfg.Retry)
		}
	}
}
