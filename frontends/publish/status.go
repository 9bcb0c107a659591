package publish

import (
	"fmt"
	"time"
)

// Status is the progress of a Publisher.
type Status struct {
	// true after the first commit
	Published bool
	// An aggregator answered and Restored is known.
	Connected bool
	// Restored is true if an earlier process's fragment existed on connect.
	Restored bool
	// last failure; nil after a commit
	Err error
	// why the stream was lost; nil while it exists
	Away error
	// why a part with items is frozen, or nil
	Frozen error
	// of the last commit
	Revision     uint64
	Acknowledged time.Time
}

// Degraded returns why the rules in force differ from the wanted ones.
func (s *Status) Degraded() error {
	switch {
	case s.Away != nil:
		return fmt.Errorf("the aggregator does not answer, and changes wait for it: %w", s.Away)
	case s.Err != nil:
		return fmt.Errorf("changes are not committed: %w", s.Err)
	}
	return s.Frozen
}

func (p *Publisher[K, V]) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// acknowledge records a commit. update is false for a session's own resync.
func (p *Publisher[K, V]) acknowledge(revision uint64, update bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Published = p.status.Published || update
	p.status.Revision, p.status.Acknowledged, p.status.Err = revision, time.Now(), nil
}

func (p *Publisher[K, V]) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Err = err
}

// onStream records the loss of the stream, or nil. Updates wait while it is down.
func (p *Publisher[K, V]) onStream(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Away = err
}

func (p *Publisher[K, V]) setFrozen(why error) {
	p.cfg.Backlog.setFrozen(why != nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Frozen = why
}
