package desired_test

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// allTables selects every table.
func allTables(nft.TableID) bool { return true }

// dropAdopted withdraws an adopted fragment, and reports whether it was one and is gone.
func dropAdopted(s *merge.State, key desired.Key) bool {
	f, ok := s.Fragments[key]
	return ok && f.Adopted && s.Change(key, func(a *merge.Apply) {
		a.F = f
		a.Withdraw(f)
	}, nil) == nil
}

// noOps reports whether there is nothing to commit but new deadlines.
func noOps(p *desired.Plan) bool {
	return !slices.ContainsFunc(p.Ops, func(op kernel.Op) bool { add, ok := op.(kernel.AddElements); return !ok || !add.Renew })
}

// Unclaimed is a table or part with content that adopt.Dump found, without a fragment.
type Unclaimed struct {
	Table nft.TableID
	// Object is "chain input", "set blocked" or "counter drops"; "" is the table
	// itself.
	Object string
	// Rules and Elements count content without a fragment.
	Rules, Elements int
}

// unclaimedOf lists the content that DropUnclaimed would remove, in a fixed order.
func unclaimedOf(s *merge.State) []Unclaimed {
	var all []Unclaimed
	for _, h := range s.Unclaimed.SortedHoldings() {
		if len(h.Shares) == 0 {
			all = append(all, Unclaimed{Table: h.Table.ID})
		}
		for _, id := range merge.SortedObjects(h.Shares) {
			o := h.Table.Parts[id]
			u := Unclaimed{Table: h.Table.ID, Object: o.At().InTable()}
			switch sh := h.Shares[id].(type) {
			case *merge.ChainShare:
				u.Rules = len(sh.Rules)
			case *merge.SetShare:
				if sh.Waiting || sh.Passive && len(o.Fragments()) > 1 {
					continue
				}
				u.Elements = sh.Elements.Len()
			}
			all = append(all, u)
		}
	}
	return all
}

// sortedKeys returns a map's keys in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := slices.AppendSeq(make([]K, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}
