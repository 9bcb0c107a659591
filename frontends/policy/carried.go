package policy

import (
	"time"

	"github.com/weft-proxy/weft/frontends/publish"
)

// carried has the outcomes of objects beside the publisher's items, such as pods: each commit
// carries all their changes. The lock of the state guards it.
type carried[K comparable] struct {
	outcomes map[K]publish.Outcome
	wanted   map[K]struct{} // changed, without a commit
}

// want notes that an object changed or was removed.
func (c *carried[K]) want(key K, exists bool) {
	if !exists {
		delete(c.outcomes, key)
		delete(c.wanted, key)
		return
	}
	if c.outcomes == nil {
		c.outcomes = make(map[K]publish.Outcome)
	}
	if c.wanted == nil {
		c.wanted = make(map[K]struct{})
	}
	o := c.outcomes[key]
	o.State = publish.Wanted
	c.outcomes[key], c.wanted[key] = o, struct{}{}
}

func (c *carried[K]) commit(revision uint64, since time.Time) (keys []K) {
	for key := range c.wanted {
		c.outcomes[key] = publish.Outcome{State: publish.InForce, Revision: revision, Since: since}
		keys = append(keys, key)
	}
	c.wanted = nil
	return keys
}

// outcome returns the outcome of an object. degraded is the reason of failing commits, or nil.
func (c *carried[K]) outcome(key K, degraded error) publish.Outcome {
	o := c.outcomes[key]
	if o.State == publish.Wanted {
		o.Reason = degraded
	}
	return o
}
