package merge

import (
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// mayShare reports whether a fragment may share a part. The first publisher owns it; others need a
// grant. If the owner has a grant, a publisher without one becomes the owner. Without a Grant all
// may share, and no owner is recorded.
func (a *Apply) mayShare(h *Holding, o Part) bool {
	n, mine := o.Base(), h.Fragment.Key.Publisher
	if a.grant == nil || n.Owner == mine {
		return true
	}
	owner := ownerOf(o)
	err := error(nil)
	if owner == "" {
		owner = mine
	} else if owner != mine {
		err = a.grant(mine, owner, o.At())
	}
	if err != nil && a.grant(owner, mine, o.At()) == nil {
		owner, err = mine, nil
	}
	if err != nil {
		a.deny(o.At(), err)
		return false
	}
	assignRecorded(a.s, o, &n.Owner, owner)
	return true
}

func ownerOf(o Part) string {
	if owner := o.Base().Owner; owner != "" {
		return owner
	}
	for _, f := range o.Fragments() {
		if !f.Unclaimed {
			return f.Key.Publisher
		}
	}
	return ""
}

func Declares(publisher string, o Part) bool {
	return slices.ContainsFunc(o.Fragments(), func(f *Fragment) bool { return !f.Unclaimed && f.Key.Publisher == publisher })
}

func (a *Apply) deny(at desired.Place, err error) {
	if len(a.violations) < desired.MaxViolations {
		a.violations = append(a.violations, desired.Violation{Object: at, Message: err.Error(), Reason: desired.ReasonPermission, Err: err})
	}
}

func (a *Apply) disown(o Part) {
	if n := o.Base(); n.Owner != "" && !Declares(n.Owner, o) {
		assignRecorded(a.s, o, &n.Owner, "")
	}
}

// checkReferred finds references without a grant to parts of another owner: they would block a
// removal, run the owner's rules, and use up its quotas.
func (a *Apply) checkReferred(tu *desired.TableUpdate) {
	h := a.F.Tables[tu.Table]
	if a.grant == nil || h == nil {
		return
	}
	var seen map[ObjectID]bool
	refer := func(at desired.Place, id ObjectID) {
		if id.Name == "" || seen[id] {
			return
		}
		if seen == nil {
			seen = map[ObjectID]bool{}
		}
		seen[id] = true
		o, ok := Find[Part](a.s, tu.Table, id)
		if !ok {
			return
		}
		mine, owner := a.F.Key.Publisher, ownerOf(o)
		if owner == "" || owner == mine {
			return
		}
		if err := a.grant(mine, owner, o.At()); err != nil && a.grant(owner, mine, o.At()) != nil {
			a.deny(at, err)
		}
	}
	for i := range tu.PutChains {
		id := ChainID(tu.PutChains[i].Decl.Name)
		if sh, ok := h.Shares[id].(*ChainShare); ok {
			for _, ref := range sh.Refs {
				refer(h.Table.Part(id).At(), ref)
			}
		}
	}
	for i := range tu.PutSets {
		a.referTargets(h, tu.PutSets[i].Decl.Name, tu.PutSets[i].Elements, refer)
	}
	for i := range tu.Elements {
		a.referTargets(h, tu.Elements[i].Set, tu.Elements[i].Add, refer)
	}
}

func (a *Apply) referTargets(h *Holding, name string, elems []nftset.Element, refer func(desired.Place, ObjectID)) {
	sh, ok := h.Shares[SetID(name)].(*SetShare)
	if !ok || !packed.HasTargets(sh.Decl) {
		return
	}
	at := desired.Place{Table: h.Table.ID, Kind: "map", Name: name}
	for i := range elems {
		refer(at, LeadsTo(sh.Decl, elems[i].Data))
	}
}

// Dormancy says whether a fragment wants a table dormant.
type Dormancy uint8

const (
	// Awake fragments do not.
	Awake Dormancy = iota
	// DormantAlone has no effect beside an awake fragment of another publisher: its chains must
	// stay on their hooks.
	DormantAlone
	// Dormant always has an effect.
	Dormant
)

// Dormant reports whether the base chains are off their hooks.
func (t *Table) Dormant() bool {
	return slices.ContainsFunc(t.Holdings, func(h *Holding) bool {
		return h.Dormant == Dormant || h.Dormant == DormantAlone && t.awakeBeside(h.Fragment.Key.Publisher) == nil
	})
}

// awakeBeside returns the first awake fragment of another publisher, or nil.
func (t *Table) awakeBeside(publisher string) *Fragment {
	var found *Fragment
	for _, h := range t.Holdings {
		f := h.Fragment
		if h.Dormant == Awake && !f.Unclaimed && f.Key.Publisher != publisher && (found == nil || f.Compare(found) < 0) {
			found = f
		}
	}
	return found
}

// setDormant needs a grant beside another publisher. Without one a fragment is DormantAlone.
func (a *Apply) setDormant(h *Holding, on bool) {
	wanted := Awake
	if on {
		wanted = Dormant
	}
	if publisher := h.Fragment.Key.Publisher; on && a.grant != nil {
		at := desired.Place{Table: h.Table.ID}
		if err := a.grant(publisher, "", at); err != nil {
			wanted = DormantAlone
		}
		if other := h.Table.awakeBeside(publisher); other != nil && wanted == DormantAlone {
			if err := a.grant(publisher, other.Key.Publisher, at); err != nil {
				a.deny(at, err)
			}
		}
	}
	if h.Dormant == wanted {
		return
	}
	a.s.MarkTable(h.Table)
	a.s.stamp(&h.Table.Origin)
	assignRecorded(a.s, nil, &h.Dormant, wanted)
}
