package store

import (
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Update makes a transaction that writes, and returns when it is on the disk.
//
// Possible errors: ErrNotOpen, ErrDamaged, f's and the file system's.
func (s *Store) Update(f func(*Tx) error) error {
	return s.call(func() error { return s.transact(f) })
}

func (s *Store) call(f func() error) error {
	if s.db.Load() == nil {
		return ErrNotOpen
	}
	result := make(chan error, 1)
	select {
	case s.jobs <- func() { result <- f() }:
		return <-result
	case <-s.done:
		return ErrNotOpen
	}
}

// transact makes one transaction. It first creates the database if Load could not.
func (s *Store) transact(f func(*Tx) error) error {
	if s.cfg.Fault != nil {
		if err := s.cfg.Fault(); err != nil {
			return err
		}
	}
	if s.unwritten != nil {
		db, _, err := s.create(s.db.Load(), nil)
		if s.unwritten = err; err != nil {
			return err
		}
		if err := s.db.Swap(db).Close(); err != nil {
			return err
		}
	}
	return guarded(func() error {
		return s.db.Load().Update(func(tx *bolt.Tx) error {
			t := newTx(tx)
			if err := f(t); err != nil {
				return err
			}
			return t.finish()
		})
	})
}

func (s *Store) run() {
	defer close(s.done)
	for {
		due := time.Now().Add(never)
		for _, t := range s.tasks {
			if at := t.dueAt(); at.Before(due) {
				due = at
			}
		}
		select {
		case job := <-s.jobs:
			job()
		case <-s.nudge:
		case <-time.After(time.Until(due)):
		case <-s.stopping:
			for _, t := range s.tasks {
				t.run()
			}
			s.end()
			return
		}
		for _, t := range s.tasks {
			if !t.dueAt().After(time.Now()) {
				t.run()
			}
		}
	}
}

// A failure of end only costs a log line at the next start.
func (s *Store) end() {
	if s.unwritten == nil {
		_ = guarded(func() error {
			return s.db.Load().Update(func(tx *bolt.Tx) error { return tx.Bucket(stateBucket).Delete(runningKey) })
		})
	}
}

// never is the delay of a Task without work.
const never = 24 * time.Hour

// Task is a queue that the goroutine of the Store writes.
type Task struct {
	store *Store
	// failing logs the first failure, again a success after failures.
	kind, failing, again string
	write                func(update func(func(*Tx) error) error) error

	mu  sync.Mutex
	due time.Time
	// waiting gets the outcome of the next write.
	waiting []func(error)
	err     atomic.Pointer[error]
}

// NewTask adds a queue. When it is due, write makes transactions with update, between calls of
// Update. After an error it is called again after Config.Retry.
func (s *Store) NewTask(kind, failing, again string, write func(update func(func(*Tx) error) error) error) *Task {
	t := &Task{store: s, kind: kind, failing: failing, again: again, write: write, due: time.Now().Add(never)}
	s.tasks = append(s.tasks, t)
	return t
}

func (t *Task) dueAt() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.due
}

// Hurry makes the queue due after d at the latest.
func (t *Task) Hurry(d time.Duration) {
	t.mu.Lock()
	at := time.Now().Add(d)
	earlier := at.Before(t.due)
	if earlier {
		t.due = at
	}
	t.mu.Unlock()
	if earlier {
		select {
		case t.store.nudge <- struct{}{}:
		default:
		}
	}
}

// Await makes the queue due now; done gets the outcome, but not after Close.
func (t *Task) Await(done func(error)) {
	t.mu.Lock()
	t.waiting = append(t.waiting, done)
	t.mu.Unlock()
	t.Hurry(0)
}

// Failing returns why the last write failed, or nil.
func (t *Task) Failing() error {
	if err := t.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (t *Task) run() {
	t.mu.Lock()
	waiting := t.waiting
	t.waiting, t.due = nil, time.Now().Add(never)
	t.mu.Unlock()
	s := t.store
	err := t.write(s.updateAfterOthers)
	if err != nil {
		before := t.err.Swap(&err)
		s.cfg.Failed(t.kind)
		if before == nil || (*before).Error() != err.Error() {
			s.cfg.Logger.Error(t.failing, "error", err, "retry", s.cfg.Retry)
		}
		t.Hurry(s.cfg.Retry)
	} else if t.err.Swap(nil) != nil {
		s.cfg.Logger.Info(t.again)
	}
	for _, done := range waiting {
		done(err)
	}
}

// updateAfterOthers lets waiting calls of Update go first.
func (s *Store) updateAfterOthers(f func(*Tx) error) error {
	for {
		select {
		case job := <-s.jobs:
			job()
			continue
		default:
			return s.transact(f)
		}
	}
}

// Done is closed after Close has run all tasks.
func (s *Store) Done() <-chan struct{} { return s.done }
