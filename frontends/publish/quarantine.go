package publish

import (
	"context"
	"errors"
	"slices"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

const (
	// firstQuarantine and maxQuarantine bound the time until a rejected item is tried
	// again.
	firstQuarantine = 10 * time.Second
	maxQuarantine   = 5 * time.Minute
)

// quarantined is an item that the aggregator rejected.
type quarantined struct {
	// until is when it is tried again, tried when it was rejected last.
	until, tried time.Time
	delay        time.Duration
	why          error
	// trying is true while it is rendered, to be tried.
	trying bool
}

// collect adds changes to those that are pending. A quarantined item that is deleted is
// released; one that changes is tried again soon.
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
		default:
			q.until = soonest(q.until, q.tried.Add(minRetry))
			l.refuse(c.Key, q.why, q.until)
		}
	}
	l.pending.add(rest)
}

// readmit tries the quarantined items again that are due.
func (l *loop[K, V]) readmit(ctx context.Context) error {
	var due []Change[K, V]
	for key, q := range l.quarantine {
		if !l.snapshot && !q.until.After(time.Now()) {
			q.trying = true
			due = append(due, Change[K, V]{Key: key, New: l.cfg.Renderer.Value(key)})
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

// publish sends changes. If they are rejected, it finds the items or the part at fault,
// and publishes the rest. An error ends Run.
func (l *loop[K, V]) publish(ctx context.Context, changes []Change[K, V]) error {
	// repeated is true after the fragment was sent as a whole because nothing was named.
	repeated := false
	err := l.send(ctx, changes)
	for err != nil {
		rejected := rejection(err)
		if rejected == nil {
			return l.fail(ctx, err)
		}
		part, wide := l.partOf(rejected)
		if !wide {
			if out := l.exclude(l.owners(rejected), rejected); len(out) > 0 {
				// This ends: each round excludes an item that was not excluded before.
				repeated = false
				err = l.send(ctx, out)
				continue
			}
		}
		switch {
		case !repeated:
			// The cause may be a passing condition of the kernel.
			repeated, l.snapshot = true, true
			if err = l.send(ctx, nil); err == nil {
				l.log.Warn("an update was rejected, and accepted when it was repeated", "detail", rejected.Detail())
			}
		case wide:
			repeated = false
			l.freeze(ctx, part, rejected)
			err = l.send(ctx, nil)
		default:
			return l.bisect(ctx, err)
		}
	}
	return nil
}

// exclude quarantines items, and returns the changes that remove those which are
// rendered.
func (l *loop[K, V]) exclude(keys []K, why *client.RejectedError) []Change[K, V] {
	var out []Change[K, V]
	var names, changed []K
	var retry time.Duration
	for _, key := range keys {
		q := l.quarantine[key]
		if q == nil {
			q = &quarantined{}
			l.quarantine[key] = q
		} else if !q.trying {
			continue
		}
		q.delay = min(max(firstQuarantine, 2*q.delay), maxQuarantine)
		q.tried, q.trying = time.Now(), false
		q.until = q.tried.Add(q.delay)
		out = append(out, Change[K, V]{Key: key})
		names, retry = append(names, key), max(retry, q.delay)
		if q.why = why; l.refuse(key, why, q.until) {
			changed = append(changed, key)
		}
	}
	if len(out) > 0 {
		l.log.Error("items are rejected: continuing without them", "items", names, "retry", retry, "detail", why.Detail())
	}
	l.reportRefused(changed)
	return out
}

// bisect finds the rejected items among those that are not in force, starting from the
// values that are. cause is the error that all of them led to.
func (l *loop[K, V]) bisect(ctx context.Context, cause error) error {
	suspects := slices.DeleteFunc(l.uncommitted.list(l.cfg.Compare), func(c Change[K, V]) bool { return c.New == nil })
	if len(suspects) == 0 {
		return l.fail(ctx, cause)
	}
	// parts are reverted, and not tried yet.
	var parts [][]Change[K, V]
	split := func(part []Change[K, V], cause error) error {
		if len(part) == 1 {
			return l.sendWhole(ctx, l.exclude([]K{part[0].Key}, rejection(cause)))
		}
		if err := l.sendWhole(ctx, reverted(part)); err != nil {
			return err
		}
		half := len(part) / 2
		parts = append(parts, part[half:], part[:half])
		return nil
	}
	err := split(suspects, cause)
	for err == nil && len(parts) > 0 {
		part := parts[len(parts)-1]
		parts = parts[:len(parts)-1]
		if cause := l.sendWhole(ctx, part); rejection(cause) != nil {
			err = split(part, cause)
		} else {
			err = cause
		}
	}
	if err != nil {
		// No item is at fault, or the aggregator is away: render the wanted values, for
		// the next snapshot.
		suspects = slices.DeleteFunc(suspects, func(c Change[K, V]) bool { return l.quarantine[c.Key] != nil })
		l.uncommitted.add(suspects)
		l.render(suspects, false)
		return l.fail(ctx, err)
	}
	// If one item took something over from another, both halves may have had it for a
	// moment. A snapshot makes sure.
	l.snapshot, l.retry = true, time.Time{}
	return nil
}

// sendWhole is send without stages: what is rejected is then in the changes, and not in
// those that an earlier stage left.
func (l *loop[K, V]) sendWhole(ctx context.Context, changes []Change[K, V]) error {
	if l.staged == nil {
		return l.send(ctx, changes)
	}
	l.snapshot = true
	l.uncommitted.add(changes)
	l.render(changes, false)
	for l.moreStages() {
		l.render(nil, false)
	}
	return l.send(ctx, nil)
}

// reverted returns the changes back to the values in force.
func reverted[K comparable, V any](changes []Change[K, V]) []Change[K, V] {
	out := make([]Change[K, V], len(changes))
	for i, c := range changes {
		out[i] = Change[K, V]{Key: c.Key, New: c.Old}
	}
	return out
}

// owners returns the items that violations name, in order.
func (l *loop[K, V]) owners(rejected *client.RejectedError) []K {
	var out []K
	for _, v := range rejected.Violations {
		if key, ok := l.cfg.Renderer.Owner(v.GetObject()); ok {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, l.cfg.Compare)
	return slices.Compact(out)
}

// rejection returns the rejection that an error is, nil if it is not one or is not
// about the content of single items.
func rejection(err error) *client.RejectedError {
	rejected, ok := errors.AsType[*client.RejectedError](err)
	if !ok || rejected.Has(weftv1.Violation_REASON_TAKEN_OVER) || rejected.Has(weftv1.Violation_REASON_PERMISSION) {
		return nil
	}
	return rejected
}
