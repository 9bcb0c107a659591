package render

import (
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

// hooks are the chains on hooks that exist only while a listener has an element for a
// role. Source ranges apply to addresses before destination NAT.
var hooks = [numRoles][]hook{
	roleNoEndpoint: {{"filter-input", "filter", "input", "filter", "ct state new jump " + chainInputCheck}},
	roleLimited: {
		{"firewall-prerouting", "filter", "prerouting", "dstnat - 10", "ct state new jump " + chainFirewall},
		{"firewall-output", "filter", "output", "-110", "ct state new jump " + chainFirewall},
	},
	// The kernel runs nat chains only for the first packet of a flow, and here after it was
	// sent to an endpoint. The source is still the client's before srcnat, for which nft has
	// no name in the input hook.
	roleRemember: {
		{"nat-remember-postrouting", "nat", "postrouting", "srcnat - 1", "ct status dnat jump " + chainRemember},
		{"nat-remember-input", "nat", "input", "99", "ct status dnat jump " + chainRemember},
	},
}

// hooks declares the chains of a role.
func (p *patch) hooks(r role) {
	for i := range hooks[r] {
		p.chain(hooks[r][i].chain())
	}
}

// restoreHooks adopts the chains of an earlier renderer: a role of which a table has all.
func (t *table) restoreHooks(of *weftv1.Table) {
	missing := func(h hook) bool {
		return !slices.ContainsFunc(of.GetChains(), func(c *weftv1.Chain) bool { return c.GetName() == h.name })
	}
	for r, all := range hooks {
		if len(all) > 0 && !slices.ContainsFunc(all, missing) {
			t.hooks.idle[role(r)] = struct{}{}
		}
	}
}
