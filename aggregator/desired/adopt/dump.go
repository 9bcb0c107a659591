package adopt

import (
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
)

func DumpedRule(family nft.Family, d *kernel.Rule) *merge.Slot {
	r := &compile.Rule{Family: family, Comment: d.Info.Comment, Fingerprint: d.Info.Fingerprint, Writes: d.Writes}
	return &merge.Slot{Rule: r, Owner: d.Info.Owner, Handle: d.Handle}
}

// Differences returns the keys in which a dumped set differs from the merge, with the kernel's
// elements.
func Differences(s *merge.State, o *merge.Set, d *kernel.Set) map[string]merge.Touch {
	touched := map[string]merge.Touch{}
	if !o.Exists() || !d.Decl.Equal(o.Decl()) {
		// The set goes with all elements.
		for i := range d.Elements {
			touched[packed.ID(d.Decl, &d.Elements[i])] = merge.Touch{Before: d.Elements[i], Had: true, Origin: -1}
		}
		return touched
	}
	decl := o.Decl()
	there := make(map[string]struct{}, len(d.Elements))
	for i := range d.Elements {
		s.Looked.Keys++
		e := &d.Elements[i]
		id := packed.ID(decl, e)
		there[id] = struct{}{}
		want, sh, ok := o.Wanted(id)
		if ok && packed.Same(decl, e, &want) && !s.Expiries.Lags(sh, id, e.Expires()) || packed.Dynamic(decl) {
			continue
		}
		touched[id] = merge.Touch{Before: *e, Had: true, Due: s.Expiries.Deadline(e.Expires()), Origin: -1}
	}
	for id := range o.InForce() {
		s.Looked.Keys++
		if _, ok := there[id]; !ok {
			touched[id] = merge.Touch{Origin: -1}
		}
	}
	return touched
}

// DumpedPart is a declaration of a dumped table, with the content of a chain or set.
type DumpedPart struct {
	ID    merge.ObjectID
	Decl  any
	Chain *kernel.Chain
	Set   *kernel.Set
}

func DumpedParts(d *kernel.Table) []DumpedPart {
	var all []DumpedPart
	tu := desired.TableUpdate{PutObjects: d.Objects, PutFlowtables: d.Flowtables}
	for _, decl := range merge.ObjectDecls(&tu) {
		all = append(all, DumpedPart{ID: decl.ID(), Decl: decl})
	}
	for i := range d.Sets {
		if decl := d.Sets[i].Decl; decl != nil {
			all = append(all, DumpedPart{ID: merge.SetID(decl.Name), Decl: decl, Set: &d.Sets[i]})
		}
	}
	for i := range d.Chains {
		if decl := d.Chains[i].Decl; decl != nil {
			all = append(all, DumpedPart{ID: merge.ChainID(decl.Name), Decl: decl, Chain: &d.Chains[i]})
		}
	}
	return all
}
