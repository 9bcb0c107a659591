package kernel

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
)

// findHandles reads the handles of rules that a batch added and whose echoes
// did not come: the kernel drops the echo of a rule that takes more than a page.
//
// Of the rules with the same content and owner, those with the greatest
// handles are the new ones, and handles grow in the order of the batch.
func (c *Conn) findHandles(lost []AddRule) error {
	byChain := map[chainID][]AddRule{}
	var order []chainID
	for _, r := range lost {
		id := chainID{r.Table, r.Chain}
		if byChain[id] == nil {
			order = append(order, id)
		}
		byChain[id] = append(byChain[id], r)
	}
	for _, id := range order {
		rules, err := c.chainRules(id.table, id.name)
		if err != nil {
			return err
		}
		slices.SortFunc(rules, func(a, b ruleInfo) int { return cmp.Compare(b.handle, a.handle) })
		missing := byChain[id]
		for _, add := range slices.Backward(missing) {
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

// chainRules reads the rules of one chain.
func (c *Conn) chainRules(id nft.TableID, chain string) ([]ruleInfo, error) {
	var rules []ruleInfo
	request := attr.AppendString(nil, unix.NFTA_RULE_TABLE, id.Name)
	request = attr.AppendString(request, unix.NFTA_RULE_CHAIN, chain)
	err := c.dumpInTable(unix.NFT_MSG_GETRULE, id.Family, request, func() { rules = rules[:0] }, func(m reply) error {
		r, err := decodeRule(m)
		rules = append(rules, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list rules of chain %s %s: %w", id, chain, err)
	}
	return rules, nil
}
