package store

import (
	"context"

	bolt "go.etcd.io/bbolt"

	"github.com/weft-proxy/weft/aggregator/retry"
)

// Update makes a transaction that writes, and returns when it is on the disk.
//
// Possible errors: ErrNotOpen, ErrDamaged, f's and the file system's.
func (s *Store) Update(f func(*Tx) error) error {
	return s.locked(func() error {
		if s.cfg.Fault != nil {
			if err := s.cfg.Fault(); err != nil {
				return err
			}
		}
		if err := s.createAgain(); err != nil {
			return err
		}
		return guarded(func() error {
			return s.db.Load().Update(func(tx *bolt.Tx) error {
				t := s.newTx(tx)
				if err := f(t); err != nil {
					return err
				}
				return t.finish()
			})
		})
	})
}

func (s *Store) locked(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db.Load() == nil {
		return ErrNotOpen
	}
	return f()
}

// createAgain creates the database if Load could not.
func (s *Store) createAgain() error {
	if s.unwritten == nil {
		return nil
	}
	db, _, _, err := s.create(s.db.Load())
	if s.unwritten = err; err != nil {
		return err
	}
	return s.db.Swap(db).Close()
}

// NewTask returns a Task that runs from Load to Close, and once more then. After an error, write is
// called again after Config.Retry.
func (s *Store) NewTask(kind, failing, again string, write func() error) *retry.Task {
	t := retry.New(retry.Config{
		Do: func(context.Context) error { return write() }, Retry: s.cfg.Retry, Logger: s.cfg.Logger,
		Failing: failing, Again: again, Failed: func() { s.cfg.Failed(kind) },
	})
	s.tasks = append(s.tasks, t)
	return t
}

// Done is closed after Close has run all tasks.
func (s *Store) Done() <-chan struct{} { return s.done }

// Close runs all tasks once more, and closes the database.
func (s *Store) Close() error {
	if s.db.Load() == nil {
		return nil
	}
	s.stop()
	s.running.Wait()
	for _, t := range s.tasks {
		t.Call(context.Background())
	}
	close(s.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unwritten == nil {
		// A failure only costs a log line at the next start.
		_ = guarded(func() error {
			return s.db.Load().Update(func(tx *bolt.Tx) error { return tx.Bucket(stateBucket).Delete(runningKey) })
		})
	}
	return s.db.Swap(nil).Close()
}
