package publish

import (
	"context"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/client"
)

const (
	firstQuarantine = 10 * time.Second
	maxQuarantine   = 5 * time.Minute
)

// quarantined is the state of a refused item.
type quarantined[V any] struct {
	// next attempt and last rejection
	until, tried time.Time
	delay        time.Duration
	why          *client.RejectedError
	// total size in force at a rejection because of a limit
	total int
	// value kept in force, or nil
	kept *V
	// while the item is rendered for a retry
	trying bool
}

// collect adds changes to pending. A deleted quarantined item is released; a changed one is retried soon.
func (l *loop[K, V]) collect(changes []Change[K, V]) {
	if len(l.quarantine) == 0 {
		l.pending.add(changes)
		return
	}
	var rest []Change[K, V]
	for _, c := range changes {
		q := l.quarantine[c.Key]
		switch {
		case q == nil:
			rest = append(rest, c)
		case c.New == nil:
			l.forget(c.Key)
			if q.kept != nil {
				rest = append(rest, Change[K, V]{Key: c.Key, Old: q.kept})
			}
		default:
			q.until = soonest(q.until, q.tried.Add(minRetry))
			l.refuse(c.Key, q.why, q.until)
		}
	}
	l.pending.add(rest)
}

// reconsider soon retries items refused by a limit if less is in force now.
func (l *loop[K, V]) reconsider(committed []Change[K, V]) {
	for _, c := range committed {
		l.total += l.size(c.New) - l.size(c.Old)
	}
	for key, q := range l.quarantine {
		if !q.trying && l.total < q.total && limited(q.why) {
			q.until = soonest(q.until, q.tried.Add(minRetry))
			l.refuse(key, q.why, q.until)
		}
	}
}

func (p *Publisher[K, V]) size(v *V) int {
	if v == nil {
		return 0
	}
	return p.cfg.Renderer.Size(v)
}

func (l *loop[K, V]) readmit(ctx context.Context) error {
	var due []Change[K, V]
	for key, q := range l.quarantine {
		if !l.snapshot && !q.until.After(time.Now()) {
			q.trying = true
			due = append(due, Change[K, V]{Key: key, Old: q.kept, New: l.cfg.Renderer.Value(key)})
			delete(l.held, key)
		}
	}
	if len(due) == 0 {
		return nil
	}
	slices.SortFunc(due, func(a, b Change[K, V]) int { return l.cfg.Compare(a.Key, b.Key) })
	if err := l.publish(ctx, due); err != nil {
		return err
	}
	for _, c := range due {
		if q := l.quarantine[c.Key]; q != nil && q.trying && !l.waiting() {
			delete(l.quarantine, c.Key)
			l.log.Info("an item that was refused is published now", "item", c.Key)
		}
	}
	return nil
}

// exclude puts items into quarantine, and returns their removal: an outdated value must not stay in force.
func (l *loop[K, V]) exclude(keys []K, why *client.RejectedError) []Change[K, V] {
	var out []Change[K, V]
	var names, changed []K
	var retry time.Duration
	for _, key := range keys {
		q := l.quarantine[key]
		if q == nil {
			q = &quarantined[V]{}
			l.quarantine[key] = q
		} else if !q.trying {
			continue
		}
		q.delay = min(max(firstQuarantine, 2*q.delay), maxQuarantine)
		q.tried, q.trying = time.Now(), false
		q.until = q.tried.Add(q.delay)
		out = append(out, Change[K, V]{Key: key, Old: q.kept})
		q.kept = nil
		// The rest of a divided change is rejected with it.
		delete(l.pending.items, key)
		names, retry = append(names, key), max(retry, q.delay)
		if q.why, q.total = why, l.total; l.refuse(key, why, q.until) {
			changed = append(changed, key)
		}
	}
	if len(out) > 0 {
		l.log.Error("items are rejected: continuing without them", "items", names, "retry", retry, "detail", why.Detail())
	}
	l.reportRefused(changed)
	return out
}

func (p *Publisher[K, V]) owners(rejected *client.RejectedError) []K {
	var out []K
	for _, v := range rejected.Violations {
		if key, ok := p.cfg.Renderer.Owner(v.GetObject()); ok {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, p.cfg.Compare)
	return slices.Compact(out)
}
