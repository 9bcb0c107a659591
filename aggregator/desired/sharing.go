package desired

import (
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Grant returns why a publisher may not add to a part of a table, or refer to it,
// although owner declared it first; nil if the publisher was granted that. For a place
// without a kind it is about the flag dormant of a table in which owner has something.
type Grant func(publisher, owner string, at Place) error

// mayShare reports whether a fragment may declare a part, or change its share of it. The
// publisher that declared a part first owns it while it declares it. All its fragments
// may share the part; another publisher needs a grant. One with a grant never keeps the
// part from its owner: if it came first, the next publisher without a grant becomes the
// owner. Without a Grant every publisher may share everything, and it is not recorded who
// came first: then the order of the merge decides.
func (a *apply) mayShare(h *holding, o part) bool {
	n, mine := o.base(), h.fragment.key.Publisher
	if a.grant == nil || n.owner == mine {
		return true
	}
	owner := ownerOf(o)
	err := error(nil)
	if owner == "" {
		owner = mine
	} else if owner != mine {
		err = a.grant(mine, owner, o.at())
	}
	if err != nil && a.grant(owner, mine, o.at()) == nil {
		owner, err = mine, nil
	}
	if err != nil {
		a.deny(o.at(), err)
		return false
	}
	assignRecorded(a.s, o, &n.owner, owner)
	return true
}

// ownerOf returns the publisher that owns a part, or "".
func ownerOf(o part) string {
	if owner := o.base().owner; owner != "" {
		return owner
	}
	for _, f := range o.fragments() {
		if !f.unclaimed {
			return f.key.Publisher
		}
	}
	return ""
}

// declares reports whether a fragment of a publisher declares a part.
func declares(publisher string, o part) bool {
	return slices.ContainsFunc(o.fragments(), func(f *fragment) bool { return !f.unclaimed && f.key.Publisher == publisher })
}

// deny reports that a publisher has no grant.
func (a *apply) deny(at Place, err error) {
	if len(a.violations) < maxViolations {
		a.violations = append(a.violations, Violation{Object: at, Message: err.Error(), Reason: ReasonPermission, Err: err})
	}
}

// disown forgets the owner of a part that it no longer declares.
func (a *apply) disown(o part) {
	if n := o.base(); n.owner != "" && !declares(n.owner, o) {
		assignRecorded(a.s, o, &n.owner, "")
	}
}

// checkReferred finds references of an update to parts that another publisher owns: they
// would keep the owner from removing the parts, run its rules, and use up its quotas.
func (a *apply) checkReferred(tu *TableUpdate) {
	h := a.f.tables[tu.Table]
	if a.grant == nil || h == nil {
		return
	}
	var seen map[objectID]bool
	refer := func(at Place, id objectID) {
		if id.Name == "" || seen[id] {
			return
		}
		if seen == nil {
			seen = map[objectID]bool{}
		}
		seen[id] = true
		o, ok := find[part](a.s, tu.Table, id)
		if !ok {
			return
		}
		mine, owner := a.f.key.Publisher, ownerOf(o)
		if owner == "" || owner == mine {
			return
		}
		if err := a.grant(mine, owner, o.at()); err != nil && a.grant(owner, mine, o.at()) != nil {
			a.deny(at, err)
		}
	}
	for i := range tu.PutChains {
		id := chainID(tu.PutChains[i].Decl.Name)
		if sh, ok := h.shares[id].(*chainShare); ok {
			for _, ref := range sh.refs {
				refer(h.table.part(id).at(), ref)
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

// referTargets calls refer with the chains and objects that elements of a map lead to.
func (a *apply) referTargets(h *holding, name string, elems []nftset.Element, refer func(Place, objectID)) {
	sh, ok := h.shares[setID(name)].(*setShare)
	if !ok || !packed.HasTargets(sh.decl) {
		return
	}
	at := Place{Table: h.table.id, Kind: "map", Name: name}
	for i := range elems {
		refer(at, leadsTo(sh.decl, elems[i].Data))
	}
}

// dormancy says whether a fragment wants a table dormant.
type dormancy uint8

const (
	// awake fragments do not ask for it.
	awake dormancy = iota
	// dormantAlone has no effect while another publisher has a fragment in the table that
	// is awake: its chains must stay on their hooks.
	dormantAlone
	// dormant has an effect in any case.
	dormant
)

// dormant reports whether the base chains of the table are off their hooks.
func (t *table) dormant() bool {
	return slices.ContainsFunc(t.holdings, func(h *holding) bool {
		return h.dormant == dormant || h.dormant == dormantAlone && t.awakeBeside(h.fragment.key.Publisher) == nil
	})
}

// awakeBeside returns the first fragment of another publisher that does not want the table
// dormant, or nil.
func (t *table) awakeBeside(publisher string) *fragment {
	var found *fragment
	for _, h := range t.holdings {
		f := h.fragment
		if h.dormant == awake && !f.unclaimed && f.key.Publisher != publisher && (found == nil || f.compare(found) < 0) {
			found = f
		}
	}
	return found
}

// setDormant changes whether a fragment wants a table dormant. It needs a grant if another
// publisher has something in the table.
func (a *apply) setDormant(h *holding, on bool) {
	wanted := awake
	if on {
		wanted = dormant
	}
	if publisher := h.fragment.key.Publisher; on && a.grant != nil {
		at := Place{Table: h.table.id}
		if err := a.grant(publisher, "", at); err != nil {
			wanted = dormantAlone
		}
		if other := h.table.awakeBeside(publisher); other != nil && wanted == dormantAlone {
			a.deny(at, a.grant(publisher, other.key.Publisher, at))
		}
	}
	if h.dormant == wanted {
		return
	}
	a.s.markTable(h.table)
	a.s.stamp(&h.table.origin)
	assignRecorded(a.s, nil, &h.dormant, wanted)
}
