package policy

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/publish"
)

// carried has the outcomes of pods: each commit counts for all changed pods. The lock of the state
// guards it.
type carried struct {
	outcomes map[types.UID]publish.Outcome
	wanted   map[types.UID]struct{} // without a commit
}

func (c *carried) want(key types.UID, exists bool) {
	if !exists {
		delete(c.outcomes, key)
		delete(c.wanted, key)
		return
	}
	if c.outcomes == nil {
		c.outcomes = make(map[types.UID]publish.Outcome)
	}
	if c.wanted == nil {
		c.wanted = make(map[types.UID]struct{})
	}
	o := c.outcomes[key]
	o.State = publish.Wanted
	c.outcomes[key], c.wanted[key] = o, struct{}{}
}

// commit leaves out pods with rules in a later update.
func (c *carried) commit(revision uint64, since time.Time, waits func(types.UID) bool) {
	for key := range c.wanted {
		if !waits(key) {
			c.outcomes[key] = publish.Outcome{State: publish.InForce, Revision: revision, Since: since}
			delete(c.wanted, key)
		}
	}
}

// degraded is the reason of failing commits, or nil.
func (c *carried) outcome(key types.UID, degraded error) publish.Outcome {
	o := c.outcomes[key]
	if o.State == publish.Wanted {
		o.Reason = degraded
	}
	return o
}
