package services

import (
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// portion is the render.Renderer.Size of an update; the kernel needs about 100 ms for it.
const portion = 4096

// maxTriggers bounds the triggers kept until a commit.
const maxTriggers = 1000

type change = publish.Change[model.Key, model.Service]

// content belongs to the publishing goroutine.
type content struct {
	*render.Renderer
	state *state
	// changes for the next Render
	node         *model.Node
	serviceCIDRs *model.Prefixes
	// committing is rendered but not in force. triggers are uncommitted; beyond maxTriggers, the oldest stay.
	committing *model.Node
	triggers   []model.Trigger
}

func (c *content) Refresh() (items []change, other bool) {
	changes := c.state.refresh()
	c.triggers = append(c.triggers, changes.Triggers[:min(len(changes.Triggers), maxTriggers-len(c.triggers))]...)
	if changes.Node != nil {
		c.node, c.committing = changes.Node, changes.Node
	}
	if changes.ServiceCIDRs != nil {
		c.serviceCIDRs = changes.ServiceCIDRs
	}
	for _, s := range changes.Services {
		items = append(items, change{Key: s.Name, Old: s.Old, New: s.New})
	}
	return items, c.node != nil || c.serviceCIDRs != nil
}

func (c *content) Value(key model.Key) *model.Service { return c.state.service(key) }

func (c *content) Render(items []change, patch bool) publish.Update {
	changes := model.Changes{Services: modelChanges(items), Node: c.node, ServiceCIDRs: c.serviceCIDRs}
	c.node, c.serviceCIDRs = nil, nil
	if !patch {
		c.Load(changes)
		return publish.Update{}
	}
	return c.Update(changes)
}

func modelChanges(items []change) []model.Change {
	out := make([]model.Change, len(items))
	for i, c := range items {
		out[i] = model.Change{Name: c.Key, Old: c.Old, New: c.New}
	}
	return out
}
