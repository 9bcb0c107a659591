package publish

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// State is the progress of an item's wanted value.
type State uint8

const (
	// not committed by this process
	Wanted State = iota
	InForce
	// rejected by the aggregator
	Refused
	// not rendered by the frontend
	LeftOut
)

func (s State) String() string {
	return [...]string{Wanted: "wanted", InForce: "in force", Refused: "refused", LeftOut: "left out"}[s]
}

// Outcome says whether an item is in force, and why not.
type Outcome struct {
	State State
	// Revision and Since are the first commit of the value in force. Unless State is InForce, they describe
	// an older value. Both are zero if no commit of this process is in force.
	Revision uint64
	Since    time.Time
	// why the wanted value is not in force; for Wanted nil unless the publisher is degraded
	Reason error
	// next attempt for an unchanged refused value; zero for never
	Retry time.Time
}

func (o *Outcome) bad() bool { return o.State == Refused || o.State == LeftOut }

type outcomes[K comparable] struct {
	mu      sync.Mutex
	items   map[K]Outcome
	refused map[K]struct{}
}

func newOutcomes[K comparable]() outcomes[K] {
	return outcomes[K]{items: make(map[K]Outcome), refused: make(map[K]struct{})}
}

// update returns true if Observer.Refused needs to know. f returns false if the item is gone.
func (s *outcomes[K]) update(key K, f func(*Outcome) bool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.items[key]
	now := before
	if !f(&now) {
		now = Outcome{}
		delete(s.items, key)
	} else {
		s.items[key] = now
	}
	if now.bad() {
		s.refused[key] = struct{}{}
	} else {
		delete(s.refused, key)
	}
	return before.bad() != now.bad() || now.bad() && (before.State != now.State || before.Reason.Error() != now.Reason.Error())
}

// Want records new wanted values. Call it in Renderer.Refresh under the model's lock: then its readers never
// see a new value with an old Outcome.
func (p *Publisher[K, V]) Want(keys ...K) {
	for _, key := range keys {
		p.outcomes.update(key, func(o *Outcome) bool {
			if o.State == InForce {
				o.State = Wanted
			}
			return true
		})
	}
}

// Outcome returns the outcome of an item. It is safe for concurrent use, also under the model's lock.
func (p *Publisher[K, V]) Outcome(key K) Outcome {
	p.outcomes.mu.Lock()
	o := p.outcomes.items[key]
	p.outcomes.mu.Unlock()
	if o.State == Wanted {
		status := p.Status()
		o.Reason = status.Degraded()
	}
	return o
}

// Refused returns the refused and left-out items, in order. It is safe for concurrent use.
func (p *Publisher[K, V]) Refused() []K {
	p.outcomes.mu.Lock()
	defer p.outcomes.mu.Unlock()
	return slices.SortedFunc(maps.Keys(p.outcomes.refused), p.cfg.Compare)
}

func (l *loop[K, V]) render(items []Change[K, V], patch bool) Update {
	u := l.cfg.Renderer.Render(items, patch)
	now := l.cfg.Renderer.LeftOut()
	var changed []K
	for key, why := range now {
		if l.outcomes.update(key, func(o *Outcome) bool { o.State, o.Reason, o.Retry = LeftOut, why, time.Time{}; return true }) {
			changed = append(changed, key)
		}
	}
	for key := range l.leftOut {
		if now[key] == nil && l.outcomes.update(key, func(o *Outcome) bool { o.State, o.Reason = Wanted, nil; return true }) {
			changed = append(changed, key)
		}
	}
	l.leftOut = now
	l.reportRefused(changed)
	return u
}

func (p *Publisher[K, V]) reportRefused(keys []K) {
	if len(keys) > 0 {
		slices.SortFunc(keys, p.cfg.Compare)
		p.cfg.Observer.Refused(keys)
	}
}

// setCommitted records the uncommitted items as in force, except held ones and items awaiting another stage.
func (l *loop[K, V]) setCommitted() {
	status, more := l.Status(), l.moreStages()
	items := slices.DeleteFunc(l.uncommitted.take(l.cfg.Compare), func(c Change[K, V]) bool {
		if more && (c.New == nil || l.staged.Waits(c.Key)) {
			l.uncommitted.add([]Change[K, V]{c})
			return true
		}
		_, held := l.held[c.Key]
		return held
	})
	var changed []K
	for i := range items {
		c := &items[i]
		_, newer := l.pending.items[c.Key]
		if l.leftOut[c.Key] != nil {
			c.New = nil
		}
		if l.outcomes.update(c.Key, func(o *Outcome) bool {
			delete(l.partial, c.Key)
			if c.New == nil {
				o.Revision, o.Since = 0, time.Time{}
				return newer || o.bad()
			}
			if l.uses(c.New) {
				l.partial[c.Key] = struct{}{}
				return true
			}
			o.Revision, o.Since = status.Revision, status.Acknowledged
			if q := l.quarantine[c.Key]; !newer && (q == nil || q.trying) {
				o.State, o.Reason, o.Retry = InForce, nil, time.Time{}
			}
			return true
		}) {
			changed = append(changed, c.Key)
		}
	}
	l.reconsider(items)
	l.cfg.Observer.Committed(items)
	l.reportRefused(changed)
}

func (p *Publisher[K, V]) refuse(key K, why error, retry time.Time) (changed bool) {
	return p.outcomes.update(key, func(o *Outcome) bool {
		o.State, o.Reason, o.Retry = Refused, why, retry
		return true
	})
}

func (l *loop[K, V]) forget(key K) {
	delete(l.quarantine, key)
	delete(l.held, key)
	if l.outcomes.update(key, func(*Outcome) bool { return false }) {
		l.reportRefused([]K{key})
	}
}
