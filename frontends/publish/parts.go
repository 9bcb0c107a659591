package publish

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/client"
)

// firstFreeze is the time until a frozen part is tried again for the first time.
const firstFreeze = 5 * time.Second

// frozenParts are the parts of the fragment that are rejected as a whole.
type frozenParts struct {
	// until is when each is tried again.
	until map[string]time.Time
	// delay grows with each rejection.
	delay time.Duration
}

func newFrozenParts() frozenParts { return frozenParts{until: make(map[string]time.Time)} }

// partOf returns the part in which everything that a rejection names lies, if something
// of it belongs to no item: a kernel without IPv6 NAT must not stop IPv4. There is none
// while a part is frozen.
func (l *loop[K, V]) partOf(rejected *client.RejectedError) (part string, ok bool) {
	parts, can := l.cfg.Renderer.(Parts)
	if !can || len(l.frozen.until) > 0 {
		return "", false
	}
	shared := false
	for i, v := range rejected.Violations {
		p, known := parts.Part(v.GetObject())
		if !known || i > 0 && p != part {
			return "", false
		}
		part = p
		if !shared {
			// One is enough, and looking for an owner takes time.
			_, owned := l.cfg.Renderer.Owner(v.GetObject())
			shared = !owned
		}
	}
	return part, shared
}

// freeze continues without changes of a part: what is in force of it stays. Its items
// count as not committed until it is accepted again.
func (l *loop[K, V]) freeze(ctx context.Context, part string, why *client.RejectedError) {
	parts, ok := l.cfg.Renderer.(Parts)
	if !ok {
		return
	}
	l.frozen.delay = min(max(firstFreeze, 2*l.frozen.delay), maxQuarantine)
	l.frozen.until[part] = time.Now().Add(l.frozen.delay)
	if parts.Freeze(part, l.session.get(ctx)) {
		l.cfg.Backlog.refuse()
	} else {
		l.cfg.Backlog.readmit()
	}
	l.log.Error("a part of the fragment is rejected: it stays as it is, and the rest continues",
		"part", part, "retry", l.frozen.delay, "detail", why.Detail())
	l.snapshot = true
}

// thaw tries the frozen parts again that are due.
func (l *loop[K, V]) thaw(ctx context.Context) error {
	parts, ok := l.cfg.Renderer.(Parts)
	if !ok {
		return nil
	}
	for _, part := range slices.Sorted(maps.Keys(l.frozen.until)) {
		if l.waiting() || l.frozen.until[part].After(time.Now()) {
			continue
		}
		delete(l.frozen.until, part)
		parts.Thaw(part)
		l.snapshot = true
		if err := l.publish(ctx, nil); err != nil {
			return err
		}
		if len(l.frozen.until) == 0 && !l.snapshot {
			l.frozen.delay = 0
			l.cfg.Backlog.readmit()
			l.log.Info("a part of the fragment that was rejected is published now", "part", part)
		}
	}
	return nil
}
