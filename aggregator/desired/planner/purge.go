package planner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

func comparePurges(a, b desired.Purge) int {
	return cmp.Or(desired.CompareTables(a.Table, b.Table), strings.Compare(a.Decl.Name, b.Decl.Name))
}

func stated(o *merge.Set, id string) bool {
	return slices.ContainsFunc(o.Shares, func(sh *merge.SetShare) bool {
		return !sh.Passive && sh.Elements.Has(id)
	})
}

// Leftovers returns the dumped entries of an affinity map to remove: no rule makes them, and no
// fragment states them. Changes since the last Accept count. It returns nil if the map was declared
// in another way since.
func Leftovers(s *merge.State, p desired.Purge, entries []nftset.Element) []nftset.Element {
	o, ok := merge.Find[*merge.Set](s, p.Table, merge.SetID(p.Decl.Name))
	if !ok || !o.Affinity() || !p.Decl.Equal(o.Decl()) {
		return nil
	}
	var gone []nftset.Element
	for i := range entries {
		if e := &entries[i]; !o.Written.Makes(e) && !stated(o, packed.ID(o.Decl(), e)) {
			gone = append(gone, *e)
		}
	}
	return gone
}

// Unpurged returns the affinity maps of a dump with entries to remove, after a start or a foreign
// change.
func Unpurged(s *merge.State, dump []kernel.Table) []desired.Purge {
	var purges []desired.Purge
	for i := range dump {
		for j := range dump[i].Sets {
			d := &dump[i].Sets[j]
			if d.Decl == nil {
				continue
			}
			p := desired.Purge{Table: dump[i].ID, Decl: d.Decl}
			if o, ok := merge.Find[*merge.Set](s, p.Table, merge.SetID(p.Decl.Name)); ok && len(Leftovers(s, p, d.Elements)) > 0 {
				p.Decl = o.Decl()
				purges = append(purges, p)
			}
		}
	}
	slices.SortFunc(purges, comparePurges)
	return purges
}
