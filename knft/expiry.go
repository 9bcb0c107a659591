package knft

import (
	"cmp"
	"context"
	"maps"
	"time"

	nftset "github.com/weft-proxy/weft/nft/set"
)

// margin is added to deadlines, because the kernel counts in ticks of up to 10 ms.
const margin = 20 * time.Millisecond

// deadline is the end of an element; another timeout begins anew.
type deadline struct {
	at      time.Time
	timeout time.Duration
}

func (s *set) start(id string, now time.Time) {
	timeout := cmp.Or(s.elements[id].GetTimeout().AsDuration(), s.packed.Timeout)
	if s.elements[id] == nil || timeout == 0 {
		delete(s.deadlines, id)
	} else if s.deadlines[id].timeout != timeout {
		s.deadlines[id] = deadline{at: now.Add(timeout + margin), timeout: timeout}
	}
}

func (c *transaction) start(now time.Time) {
	for id, touched := range c.touched {
		t := c.content.tables[id]
		if t == nil {
			continue
		}
		for item, d := range touched {
			s, ok := t.items[item].(*set)
			if !ok {
				continue
			}
			for id := range d.elements {
				s.start(id, now)
			}
			if d.whole {
				s.startAll(now)
			}
		}
	}
}

func (s *set) startAll(now time.Time) {
	maps.DeleteFunc(s.deadlines, func(id string, _ deadline) bool { return s.elements[id] == nil })
	if s.packed.Flags&nftset.FlagTimeout == 0 {
		return
	}
	for id := range s.elements {
		s.start(id, now)
	}
}

// lapse removes elements after their deadlines.
func (c *transaction) lapse(now time.Time) {
	for _, t := range c.content.tables {
		for _, it := range t.items {
			s, ok := it.(*set)
			if !ok {
				continue
			}
			for id, deadline := range s.deadlines {
				if !now.Before(deadline.at) && s.elements[id] != nil {
					(&elements{transaction: c, t: t, s: s}).put(id, nil)
				}
			}
		}
	}
}

// expire sends removals of expired elements. To remove and add one in the same update has no effect.
func (a *Adapter) expire(ctx context.Context) error {
	var u *update
	a.mu.Lock()
	c := newTransaction(a.content, nil)
	c.lapse(time.Now())
	if !c.empty() {
		u = a.update(c)
	}
	a.mu.Unlock()
	if u == nil {
		return nil
	}
	return a.send(ctx, u)
}
