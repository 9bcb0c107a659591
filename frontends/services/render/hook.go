package render

import (
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

type hook struct {
	name, kind, hook, priority string
	rules                      []string
}

func (h *hook) chain() *weftv1.Chain {
	c := chain(h.name, h.rules...)
	c.Type, c.Hook, c.Priority, c.Policy = h.kind, h.hook, h.priority, "accept"
	return c
}

// UDP flows have no end, so every client packet is checked, and a client without access is cut off.
var firewall = []string{"meta l4proto udp ct direction original jump " + chainFirewall, "meta l4proto != udp ct state new jump " + chainFirewall}

// hooks are the chains that exist only while a listener has an element for a role. Rejected NodePorts on
// loopback addresses use those of roleNoEndpoint.
var hooks = [numRoles][]hook{
	roleNoEndpoint: {{"filter-input", "filter", "input", "filter", []string{"ct state new jump " + chainInputCheck}}},
	roleLimited: {
		{"firewall-prerouting", "filter", "prerouting", "dstnat - 10", firewall},
		{"firewall-output", "filter", "output", "-110", firewall},
	},
	// Before srcnat the source is still the client's; nft has no name for srcnat in the input hook.
	roleRemember: {
		{"nat-remember-postrouting", "nat", "postrouting", "srcnat - 1", []string{"ct status dnat jump " + chainRemember}},
		{"nat-remember-input", "nat", "input", "99", []string{"ct status dnat jump " + chainRemember}},
	},
}

func (p *patch) hooks(r role) {
	for i := range hooks[r] {
		p.chain(hooks[r][i].chain())
	}
}

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
