package render

import (
	"maps"
	"slices"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// Owner returns the policy of an object in a violation, such as "rule ip weft-policy
// policy-0123456789-shop/db-ingress #1".
func (r *Renderer) Owner(o *weftv1.ObjectName) (model.PolicyID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.table(o.GetFamily(), o.GetTable())
	if t == nil {
		return model.PolicyID{}, false
	}
	of := t.byName[o.GetName()]
	if of == nil {
		return model.PolicyID{}, false
	}
	id := of.owner(int(o.GetIndex()))
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		user := t.byName[name]
		if id != (model.PolicyID{}) {
			break
		}
		// A set belongs to a policy with a chain that names it.
		if _, isChain := user.content.(*weftv1.Chain); isChain && user.uses > 0 && slices.Contains(user.needs, of) {
			id = user.owner(0)
		}
	}
	return id, id != (model.PolicyID{})
}

// n counts rules from 1; 0 means the object.
func (o *object) owner(n int) model.PolicyID {
	switch {
	case n > 0 && n <= len(o.owners):
		return o.owners[n-1]
	case len(o.owners) > 0:
		return o.owners[0]
	default:
		return model.PolicyID{}
	}
}
