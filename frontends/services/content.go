package services

import (
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// portion is the size of the Services of one update: the kernel takes about 100 ms for it.
const portion = 4096

// maxTriggers bounds the triggers that wait for a commit, which may not come for long.
const maxTriggers = 1000

// change is the change of a Service.
type change = publish.Change[model.Key, model.Service]

// content is the fragment of all Services: it implements publish.Renderer, Cleaner and
// Parts. Its own methods are called by the publishing goroutine.
type content struct {
	*render.Renderer
	state *state
	// node and serviceCIDRs are changes that the next Render includes.
	node         *model.Node
	serviceCIDRs *model.Prefixes
	// committing is the Node that is rendered and not in force, triggers are those that
	// no commit carries: the oldest, which wait longest.
	committing *model.Node
	triggers   []model.Trigger
}

// Refresh implements publish.Renderer.
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

// Value implements publish.Renderer.
func (c *content) Value(key model.Key) *model.Service { return c.state.service(key) }

// Render implements publish.Renderer.
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
