package services

import (
	"sync"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/services/render"
)

// maxTriggers bounds the triggers that wait for a commit, which may not come for long.
const maxTriggers = 1000

// change is the change of a Service.
type change = publish.Change[model.Key, model.Service]

// content is the fragment of all Services: it implements publish.Renderer, Cleaner and
// Parts. Except Snapshot and size, the methods are called by the publishing goroutine.
type content struct {
	state     *state
	refreshed func(*model.Changes, uint64)
	// node and serviceCIDRs are changes that the next Render includes.
	node         *model.Node
	serviceCIDRs *model.Prefixes
	// committing is the Node that is rendered and not in force, triggers are those that
	// no commit carries: the oldest, which wait longest.
	committing *model.Node
	triggers   []model.Trigger

	// mu is not held while an answer is waited for.
	mu       sync.Mutex
	renderer *render.Renderer
}

// Refresh implements publish.Renderer.
func (c *content) Refresh() (items []change, other bool) {
	changes := c.state.refresh(c.refreshed)
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if !patch {
		c.renderer.Load(changes)
		return publish.Update{}
	}
	return publish.Update(c.renderer.Update(changes))
}

func modelChanges(items []change) []model.Change {
	out := make([]model.Change, len(items))
	for i, c := range items {
		out[i] = model.Change{Name: c.Key, Old: c.Old, New: c.New}
	}
	return out
}

// Snapshot implements publish.Renderer.
func (c *content) Snapshot() *weftv1.Fragment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renderer.Snapshot()
}

// Owner implements publish.Renderer.
func (c *content) Owner(object *weftv1.ObjectName) (model.Key, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renderer.Owner(object)
}

// Restore implements publish.Renderer: endpoints keep the slots that they have.
func (c *content) Restore(f *weftv1.Fragment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renderer.Restore(f)
}

// Idle implements publish.Cleaner.
func (c *content) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renderer.Idle()
}

// Cleanup implements publish.Cleaner.
func (c *content) Cleanup() *weftv1.Patch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renderer.Cleanup()
}

// Part implements publish.Parts: the table of an IP family.
func (c *content) Part(object *weftv1.ObjectName) (string, bool) {
	family, ok := c.renderer.FamilyOf(object)
	return family.String(), ok
}

// Freeze implements publish.Parts. A kernel that cannot do what no Service needs is not
// a reason to let load balancers avoid the node.
func (c *content) Freeze(part string, committed *weftv1.Fragment) bool {
	family := familyNamed(part)
	var kept *weftv1.Table
	for _, t := range committed.GetTables() {
		if of, ok := c.renderer.FamilyOf(&weftv1.ObjectName{Family: t.GetFamily(), Table: t.GetName()}); ok && of == family {
			kept = t
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renderer.Freeze(family, kept)
	return c.renderer.InUse(family)
}

// Thaw implements publish.Parts.
func (c *content) Thaw(part string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renderer.Thaw(familyNamed(part))
}

// familyNamed is the inverse of model.Family.String.
func familyNamed(name string) model.Family {
	if name == model.IPv6.String() {
		return model.IPv6
	}
	return model.IPv4
}

// size returns the numbers of Services and of filled slots.
func (c *content) size() (services, endpoints int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renderer.Services(), c.renderer.Elements()
}
