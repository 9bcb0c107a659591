package publish

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

const firstFreeze = 5 * time.Second

// partOf returns the part with all violations, if any violation has no owning item: a kernel without IPv6 NAT
// must not stop IPv4. It returns no part while another is frozen.
func (l *loop[K, V]) partOf(rejected *client.RejectedError) (part string, ok bool) {
	if l.parts == nil || len(l.frozen) > 0 {
		return "", false
	}
	shared := false
	for i, v := range rejected.Violations {
		p, known := l.parts.Part(v.GetObject())
		if !known || i > 0 && p != part {
			return "", false
		}
		part = p
		if !shared {
			// Finding owners is slow.
			_, owned := l.cfg.Renderer.Owner(v.GetObject())
			shared = !owned
		}
	}
	return part, shared
}

// freeze keeps a part as committed. Its items stay Wanted until the part is accepted.
func (l *loop[K, V]) freeze(ctx context.Context, part string, why *client.RejectedError) {
	l.freezeDelay = min(max(firstFreeze, 2*l.freezeDelay), maxQuarantine)
	l.frozen[part] = time.Now().Add(l.freezeDelay)
	var committed *weftv1.Fragment
	if got, err := l.client.Get(ctx, "", l.cfg.Fragment); err == nil {
		committed = got.GetFragment()
	}
	if l.parts.Freeze(part, committed) {
		l.setFrozen(fmt.Errorf("%s stays as it was: %w", part, why))
	} else {
		l.setFrozen(nil)
	}
	l.log.Error("a part of the fragment is rejected: it stays as it is, and the rest continues",
		"part", part, "retry", l.freezeDelay, "detail", why.Detail())
	l.snapshot = true
}

func (l *loop[K, V]) thaw(ctx context.Context) error {
	for _, part := range slices.Sorted(maps.Keys(l.frozen)) {
		if l.waiting() || l.frozen[part].After(time.Now()) {
			continue
		}
		delete(l.frozen, part)
		l.parts.Thaw(part)
		l.snapshot = true
		if err := l.publish(ctx, nil); err != nil {
			return err
		}
		if len(l.frozen) == 0 && !l.snapshot {
			l.freezeDelay = 0
			l.setFrozen(nil)
			l.completed()
			l.log.Info("a part of the fragment that was rejected is published now", "part", part)
		}
	}
	return nil
}

func (l *loop[K, V]) uses(value *V) bool {
	for part := range l.frozen {
		if l.parts.Uses(part, value) {
			return true
		}
	}
	return false
}

// completed sets the items committed without a part to InForce.
func (l *loop[K, V]) completed() {
	status := l.Status()
	for key := range l.partial {
		l.outcomes.update(key, func(o *Outcome) bool {
			if o.State == Wanted {
				*o = Outcome{State: InForce, Revision: status.Revision, Since: status.Acknowledged}
			}
			return true
		})
	}
	clear(l.partial)
}
