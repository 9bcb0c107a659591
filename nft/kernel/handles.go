package kernel

import (
	"cmp"
	"fmt"
	"slices"
)

// findHandles reads the handles of rules with lost echoes: the kernel drops the echo of a rule
// larger than a page. Handles increase in the batch's order, so among equal rules of an owner the
// new ones have the greatest.
func (l *link) findHandles(missing []AddRule) error {
	byChain := map[chainID][]AddRule{}
	var order []chainID
	for _, r := range missing {
		id := chainID{r.Table, r.Chain}
		if byChain[id] == nil {
			order = append(order, id)
		}
		byChain[id] = append(byChain[id], r)
	}
	for _, id := range order {
		rules, err := listRules(l, id.table, id.name, decodeRule)
		if err != nil {
			return fmt.Errorf("chain %s %s: %w", id.table, id.name, err)
		}
		slices.SortFunc(rules, func(a, b ruleInfo) int { return cmp.Compare(b.handle, a.handle) })
		for _, add := range slices.Backward(byChain[id]) {
			i := slices.IndexFunc(rules, func(r ruleInfo) bool {
				return r.info.Ours && r.info.Fingerprint == add.Rule.Fingerprint && r.info.Owner == add.Owner
			})
			if i < 0 {
				return fmt.Errorf("chain %s %s: a rule of the batch is missing", id.table, id.name)
			}
			add.Handle.N = rules[i].handle
			rules = slices.Delete(rules, i, i+1)
		}
	}
	return nil
}
