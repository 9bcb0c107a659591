package render

import (
	"cmp"
	"maps"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// hook is a chain on one of the kernel's hooks.
type hook struct{ name, kind, hook, priority, rule string }

// chain returns the message of the hook.
func (h *hook) chain() *weftv1.Chain {
	c := chain(h.name, h.rule)
	c.Type, c.Hook, c.Priority, c.Policy = h.kind, h.hook, h.priority, "accept"
	return c
}

// onDemand are the chains on hooks that exist only while a listener has an element for a
// role. They stay until Cleanup, so that a Service that comes and goes does not change
// hooks. Source ranges apply to addresses before destination NAT.
var onDemand = [numRoles][]hook{
	unserved: {{"filter-input", "filter", "input", "filter", "ct state new jump " + chainInputCheck}},
	limited: {
		{"firewall-prerouting", "filter", "prerouting", "dstnat - 10", "ct state new jump " + chainFirewall},
		{"firewall-output", "filter", "output", "-110", "ct state new jump " + chainFirewall},
	},
}

// useHooks counts a listener's verdict for a role.
func (t *table) useHooks(r role, v verdict, by int) {
	if v.to != absent && onDemand[r] != nil {
		t.hooked.add(r, by)
	}
}

// renderHooks declares chains that came into use. Those without a use stay until Cleanup.
func (t *table) renderHooks(p *patch) {
	began, ended := t.hooked.take(cmp.Compare[role])
	for _, r := range began {
		if _, declared := t.idleHooks[r]; declared {
			delete(t.idleHooks, r)
			continue
		}
		p.hooks(r)
	}
	for _, r := range ended {
		t.idleHooks[r] = struct{}{}
	}
}

// declareHooks declares all chains on demand, used or idle.
func (t *table) declareHooks(p *patch) {
	for r := range numRoles {
		if _, idle := t.idleHooks[r]; idle || t.hooked.uses[r] > 0 {
			p.hooks(r)
		}
	}
}

// hooks returns the chains on demand of a role.
func (p *patch) hooks(r role) {
	for i := range onDemand[r] {
		p.chain(onDemand[r][i].chain())
	}
}

// cleanupHooks removes the idle chains from the state and returns their names.
func (t *table) cleanupHooks() (names []string) {
	for _, r := range slices.Sorted(maps.Keys(t.idleHooks)) {
		for i := range onDemand[r] {
			names = append(names, onDemand[r][i].name)
		}
	}
	clear(t.idleHooks)
	return names
}

// restoreHooks adopts the chains of an earlier renderer.
func (t *table) restoreHooks(of *weftv1.Table) {
	for r := range numRoles {
		if onDemand[r] != nil && hasHooks(of, onDemand[r]) {
			t.idleHooks[r] = struct{}{}
		}
	}
}

// hasHooks reports whether a table has all of these chains.
func hasHooks(of *weftv1.Table, hooks []hook) bool {
	for i := range hooks {
		named := func(c *weftv1.Chain) bool { return c.GetName() == hooks[i].name }
		if !slices.ContainsFunc(of.GetChains(), named) {
			return false
		}
	}
	return true
}
