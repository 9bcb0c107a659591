package publish

import (
	"context"
	"errors"
	"slices"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// bisection divides the uncommitted items until it has the rejected ones. The suspects are rejected together
// with all accepted items. The items in later are untested; arrived were rejected meanwhile.
type bisection[K comparable, V any] struct {
	*loop[K, V]
	suspects, later, arrived []Change[K, V]
	// attempts are only planned: before the first commit, a partial update would withdraw rules of an earlier
	// process
	dry bool
	// an attempt was accepted, so the rest of the fragment is not at fault
	passed bool
	// New changes were rejected: more wait until an item is excluded. Else items that change all the time
	// would keep the bisection from ending.
	closed bool
}

// bisect handles why, the rejection of the whole.
func (l *loop[K, V]) bisect(ctx context.Context, why *client.RejectedError) error {
	status := l.Status()
	b := &bisection[K, V]{loop: l, dry: status.Restored && !status.Published}
	b.suspects = slices.DeleteFunc(l.uncommitted.list(l.cfg.Compare), func(c Change[K, V]) bool {
		return c.New == nil || l.excluded(c.Key) || l.leftOut[c.Key] != nil
	})
	if limited(why) {
		slices.SortStableFunc(b.suspects, func(a, b Change[K, V]) int { return l.size(a.New) - l.size(b.New) })
	}
	defer b.setWhole(nil)
	if err := b.run(ctx, why); err != nil {
		// Render the wanted values for the next snapshot.
		l.rerender(slices.Concat(b.suspects, b.later, b.arrived))
		return l.fail(ctx, err)
	}
	// A snapshot follows, because both items of a divided takeover may briefly have had the object.
	l.snapshot, l.retry = true, time.Time{}
	return nil
}

// run returns a rejection if no item is at fault.
func (b *bisection[K, V]) run(ctx context.Context, why *client.RejectedError) error {
	if len(b.suspects) == 0 {
		return why
	}
	if b.dry {
		// If the plan of the rejected update is accepted, bisection cannot find a cause.
		if err := b.try(ctx, nil); rejection(err) == nil {
			return errors.Join(why, err)
		}
		// The session resends rejected content on its own; it must not send a part.
		b.setWhole(b.cfg.Renderer.Snapshot())
	}
	b.revert(b.suspects)
	for len(b.suspects)+len(b.later)+len(b.arrived) > 0 {
		if !b.closed {
			if err := b.meanwhile(ctx); err != nil {
				return err
			}
		}
		if len(b.suspects) == 0 {
			if err := b.rest(ctx); err != nil {
				return err
			}
			continue
		}
		half := (len(b.suspects) + 1) / 2
		if half == len(b.suspects) {
			if err := b.condemn(ctx, why); err != nil {
				return err
			}
			continue
		}
		rejected, err := b.attempt(ctx, b.suspects[:half])
		if err != nil {
			return err
		}
		if rejected == nil {
			b.suspects = b.suspects[half:]
			continue
		}
		why = rejected
		b.later = slices.Concat(b.suspects[half:], b.later)
		b.suspects = b.suspects[:half:half]
		named := slices.DeleteFunc(b.owners(rejected), func(key K) bool {
			return !slices.ContainsFunc(b.suspects, func(c Change[K, V]) bool { return c.Key == key })
		})
		if len(named) > 0 {
			b.closed = false
			b.rerender(b.exclude(named, rejected))
			b.untested()
		}
	}
	if b.dry {
		b.dry = false
		b.setWhole(nil)
		return b.try(ctx, nil)
	}
	return nil
}

func (b *bisection[K, V]) setWhole(f *weftv1.Fragment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.whole = f
}

// condemn excludes the only suspect.
func (b *bisection[K, V]) condemn(ctx context.Context, why *client.RejectedError) error {
	if !b.passed {
		// Every attempt was rejected: perhaps no item is at fault.
		if err := b.try(ctx, nil); err != nil {
			return err
		}
		b.passed = true
	}
	guilty := b.suspects
	if limited(why) {
		// Later items are at least as large and do not fit either.
		guilty, b.later = slices.Concat(guilty, b.later), nil
	}
	keys := make([]K, len(guilty))
	for i, c := range guilty {
		keys[i] = c.Key
	}
	b.closed = false
	drop := b.exclude(keys, why)
	if b.cfg.Keep && limited(why) {
		for _, c := range guilty {
			b.quarantine[c.Key].kept = c.Old
		}
		drop = slices.DeleteFunc(drop, func(c Change[K, V]) bool { return b.quarantine[c.Key].kept != nil })
	}
	b.rerender(drop)
	b.suspects = nil
	return b.rest(ctx)
}

// untested moves the suspects to later, because they are no longer the rejected set.
func (b *bisection[K, V]) untested() {
	left := slices.DeleteFunc(b.suspects, func(c Change[K, V]) bool { return b.excluded(c.Key) })
	b.suspects, b.later = nil, slices.Concat(left, b.later)
}

// rest attempts all items in later and arrived. If they are rejected, they are the suspects.
func (b *bisection[K, V]) rest(ctx context.Context) error {
	all := slices.Concat(b.later, b.arrived)
	b.later, b.arrived = nil, nil
	rejected, err := b.attempt(ctx, all)
	if rejected != nil {
		if b.suspects = all; len(all) == 0 {
			return rejected
		}
	}
	return err
}

// attempt reverts items if they are rejected.
func (b *bisection[K, V]) attempt(ctx context.Context, items []Change[K, V]) (rejected *client.RejectedError, err error) {
	err = b.try(ctx, items)
	if rejected = rejection(err); rejected == nil {
		b.passed = b.passed || err == nil
		return nil, err
	}
	b.revert(items)
	return rejected, nil
}

// meanwhile sends changes since the start of the bisection. Rejected ones are tried again at the end.
func (b *bisection[K, V]) meanwhile(ctx context.Context) error {
	if b.dry {
		return nil
	}
	items, other := b.cfg.Renderer.Refresh()
	b.collect(items)
	changes := b.pending.take(b.cfg.Compare)
	for i := range changes {
		c := &changes[i]
		for _, list := range []*[]Change[K, V]{&b.suspects, &b.later, &b.arrived} {
			if at := slices.IndexFunc(*list, func(o Change[K, V]) bool { return o.Key == c.Key }); at >= 0 {
				c.Old = (*list)[at].Old
				*list = slices.Delete(slices.Clone(*list), at, at+1)
				if list == &b.suspects {
					b.untested()
				}
			}
		}
	}
	if len(changes) == 0 && !other {
		return nil
	}
	err := b.try(ctx, changes)
	if rejection(err) == nil {
		return err
	}
	changes = slices.DeleteFunc(changes, func(c Change[K, V]) bool { return c.New == nil })
	b.revert(changes)
	b.closed = true
	b.arrived = append(b.arrived, changes...)
	return nil
}

// try sends or plans all stages of the items in one update, so a rejection concerns only these items.
func (b *bisection[K, V]) try(ctx context.Context, items []Change[K, V]) error {
	b.rerender(items)
	if !b.dry {
		return b.send(ctx, nil)
	}
	resp, err := b.client.Plan(ctx, &weftv1.PlanRequest{Fragments: []*weftv1.Fragment{b.cfg.Renderer.Snapshot()}})
	if err != nil {
		return err
	}
	for _, r := range resp.GetRejections() {
		return &client.RejectedError{Fragment: b.cfg.Fragment, Violations: r.GetViolations()}
	}
	return nil
}

func (b *bisection[K, V]) revert(items []Change[K, V]) {
	back := make([]Change[K, V], len(items))
	for i, c := range items {
		back[i] = Change[K, V]{Key: c.Key, Old: c.Old, New: c.Old}
	}
	b.rerender(back)
	for _, c := range items {
		b.held[c.Key] = struct{}{}
	}
}

func (l *loop[K, V]) rerender(items []Change[K, V]) {
	for _, c := range items {
		delete(l.held, c.Key)
	}
	l.snapshot = true
	l.uncommitted.add(items)
	l.render(items, false)
	for l.moreStages() {
		l.render(nil, false)
	}
}

func (l *loop[K, V]) excluded(key K) bool {
	q := l.quarantine[key]
	return q != nil && !q.trying
}

// limited reports the rejection by a limit. A smaller update may pass.
func limited(r *client.RejectedError) bool { return r.Has(weftv1.Violation_REASON_LIMIT) }
