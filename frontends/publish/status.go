package publish

import (
	"fmt"
	"time"
)

// Status is the progress of a Publisher.
type Status struct {
	// Published is true after the first commit.
	Published bool
	// Connected is true once an aggregator answered, and Restored is known.
	Connected bool
	// Restored is true if the aggregator had the fragment of an earlier process when this one
	// connected: its content is in force until the first commit.
	Restored bool
	// Err is why the aggregator could not be reached, or why it did not commit the last
	// update; nil after a commit.
	Err error
	// Away is why there is no stream to the aggregator, although there was one; nil while there is.
	Away error
	// Frozen is why a part with items stays as it is, nil if none does.
	Frozen error
	// Revision is that of the last commit, Acknowledged its time.
	Revision     uint64
	Acknowledged time.Time
}

// Degraded returns why rules in force are not what the frontend wants, as far as the publisher
// knows: the aggregator is away, does not commit, or rejects a part.
func (s *Status) Degraded() error {
	switch {
	case s.Away != nil:
		return fmt.Errorf("the aggregator does not answer, and changes wait for it: %w", s.Away)
	case s.Err != nil:
		return fmt.Errorf("changes are not committed: %w", s.Err)
	}
	return s.Frozen
}

// Status returns the progress.
func (p *Publisher[K, V]) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// acknowledge notes a commit; update is false for a resync of the session's own.
func (p *Publisher[K, V]) acknowledge(revision uint64, update bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Published = p.status.Published || update
	p.status.Revision, p.status.Acknowledged, p.status.Err = revision, time.Now(), nil
}

// failed notes the error of the last attempt, nil if it succeeded.
func (p *Publisher[K, V]) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Err = err
}

// onStream is called when the stream to the aggregator begins and ends. While there is none,
// updates wait, and are sent when it is back.
func (p *Publisher[K, V]) onStream(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Away = err
}

// setFrozen notes why a part with items is frozen, nil if none is.
func (l *loop[K, V]) setFrozen(why error) {
	l.cfg.Backlog.setFrozen(why != nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.Frozen = why
}
