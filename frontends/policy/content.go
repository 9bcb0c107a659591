package policy

import (
	"net/netip"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/policy/render"
	"github.com/weft-proxy/weft/frontends/publish"
)

type change = publish.Change[model.PolicyID, model.Policy]

// content is the fragment of all policies, with policies as items: a rejected policy is left out.
// Other changes go with the next Render.
type content struct {
	*render.Renderer
	state *state
	// adopt receives the earlier bridge ports of pod addresses.
	adopt func(map[netip.Addr]string)
	// others are changes for the next Render, without policies, in the order of the Refreshes.
	others []model.Changes
}

// Restore implements publish.Renderer.
func (c *content) Restore(f *weftv1.Fragment) {
	c.adopt(render.Bindings(f))
	c.Renderer.Restore(f)
}

// Refresh implements publish.Renderer.
func (c *content) Refresh() (items []change, other bool) {
	for _, changes := range c.state.refresh() {
		for _, p := range changes.Policies {
			items = append(items, changeOf(p))
		}
		changes.Policies = nil
		if !changes.Empty() {
			c.others = append(c.others, changes)
		}
	}
	return items, len(c.others) > 0
}

func changeOf(p model.PolicyChange) change {
	if p.New == nil {
		return change{Key: p.Old.ID, Old: p.Old}
	}
	return change{Key: p.New.ID, Old: p.Old, New: p.New}
}

// Value implements publish.Renderer.
func (c *content) Value(id model.PolicyID) *model.Policy { return c.state.policy(id) }

// Render implements publish.Renderer. Changes of several Refreshes cannot be joined, because a set
// may have gone and come back: they lead to a snapshot.
func (c *content) Render(items []change, patch bool) publish.Update {
	var last model.Changes
	several := len(c.others) > 1
	if n := len(c.others); n > 0 {
		for _, o := range c.others[:n-1] {
			c.Load(o)
		}
		last = c.others[n-1]
	}
	c.others = nil
	last.Policies = make([]model.PolicyChange, len(items))
	for i, item := range items {
		last.Policies[i] = model.PolicyChange{Old: item.Old, New: item.New}
		if item.New == nil && item.Old == nil {
			// A policy that is left out.
			last.Policies[i].Old = &model.Policy{ID: item.Key}
		}
	}
	if !patch || several {
		c.Load(last)
		return publish.Update{Snapshot: patch}
	}
	return c.Update(last)
}
