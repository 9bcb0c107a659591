package render

import (
	"fmt"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// maxRules is the most rules of a policy in a chain: each packet would pass all rules.
const maxRules = 20_000

// policyRules returns nil if the policy is refused.
func (t *table) policyRules(p *model.Policy, l lookup) *chainBuilder {
	b := &chainBuilder{table: t, lookup: l}
	b.policy(p)
	// A pod that enters a set must not make the policy too large.
	if n := len(b.rules) + b.absent; n > maxRules {
		t.refused[policyLookup{p.ID, l}] = fmt.Errorf("%s has %d rules that cannot be joined: at most %d are possible", l.direction(), n, maxRules)
		return nil
	}
	return b
}

// LeftOut returns the policies that are too large, with the reasons.
func (r *Renderer) LeftOut() map[model.PolicyID]error {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[model.PolicyID]error)
	for _, t := range r.tables {
		for of, why := range t.refused {
			out[of.id] = why
		}
	}
	return out
}

// Size implements publish.Renderer: rules and entries in them.
func (r *Renderer) Size(p *model.Policy) int {
	n := 1
	for _, rules := range p.Rules {
		for i := range rules {
			n += 1 + len(rules[i].Ports) + len(rules[i].Pods) + len(rules[i].NamedPorts) + len(rules[i].Blocks)
		}
	}
	return n
}
