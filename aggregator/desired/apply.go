package desired

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired/backends"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// apply is one change in progress. It is made first and checked afterwards. If
// it is invalid, it is undone.
type apply struct {
	s *State
	// f is the fragment that is changed; nil until it is found.
	f          *fragment
	violations []Violation
	// grant says which parts of others the publisher may share; nil means all.
	grant Grant
	// err is the first error that is not a violation: ErrStale, or that of a Limit.
	err error
}

// Apply merges an update. On an error nothing has changed.
// Possible errors: *[Rejection]; one that wraps [ErrStale].
func (s *State) Apply(u *Update) error {
	return s.change(u.Fragment, func(a *apply) { a.update(u) }, nil)
}

// change makes one change, completely or not at all. limit may be nil.
func (s *State) change(key Key, f func(*apply), limit Limit) error {
	before := s.Usage(key.Publisher)
	// What an undone change has touched is computed again first, so that it is not taken
	// for an effect of this one.
	s.evaluate()
	s.grown, s.attached = s.grown[:0], s.attached[:0]
	mark := len(s.undo)
	s.serial++
	s.checks = s.checks[:0]
	s.plan = nil
	a := &apply{s: s}
	f(a)
	a.checkReferences()
	a.checkRedeclared()
	s.evaluate()
	if a.err == nil && len(a.violations) == 0 && limit != nil {
		a.err = limit(before, s.Usage(key.Publisher), s.effect(key.Publisher))
	}
	if a.err == nil && len(a.violations) == 0 {
		s.origin++
		return nil
	}
	s.undoTo(mark)
	if mark == 0 && s.origin == 0 {
		s.Rollback()
	}
	if a.err != nil {
		return a.err
	}
	return &Rejection{Fragment: key, Violations: a.violations}
}

// violate reports what is wrong at a place.
func (a *apply) violate(reason Reason, at Place, format string, args ...any) {
	if len(a.violations) < maxViolations {
		a.violations = append(a.violations, Violation{Object: at, Message: fmt.Sprintf(format, args...), Reason: reason})
	}
}

// outdated records that an update was compiled against a declaration that has
// changed.
func (a *apply) outdated(id nft.TableID, name string) {
	if a.err == nil {
		a.err = fmt.Errorf("apply fragment %s: table %s set %s: %w", a.f.key, id, name, ErrStale)
	}
}

func (a *apply) update(u *Update) {
	f := a.s.fragments[u.Fragment]
	switch {
	case !u.Snapshot && (f == nil || f.adopted):
		a.violations = append(a.violations, Violation{
			Message: "a patch needs the fragment's snapshot before it: publish one",
			Reason:  ReasonSnapshotNeeded,
		})
		return
	case u.Snapshot && len(u.Tables) == 0:
		if f != nil {
			a.f = f
			a.withdraw(f)
		}
		return
	case f == nil:
		f = newFragment(u.Fragment, u.identity())
		a.s.setFragment(u.Fragment, f)
	}
	a.f = f
	var shared []*set
	if u.Snapshot {
		shared = f.setsShared()
		a.identify(f, u.identity())
		for id, h := range f.tables {
			if !slices.ContainsFunc(u.Tables, func(tu TableUpdate) bool { return tu.Table == id }) {
				a.leave(h)
			}
		}
	}
	for i := range u.Tables {
		a.table(f, &u.Tables[i], u.Snapshot)
	}
	for i := range u.Tables {
		a.checkUses(&u.Tables[i])
		a.checkReferred(&u.Tables[i])
	}
	if u.Snapshot {
		a.resolveUnclaimed(append(shared, f.setsShared()...))
	}
	a.checkSize(f)
}

// identify gives a fragment the identity of its snapshot.
func (a *apply) identify(f *fragment, id identity) {
	if f.identity == id {
		return
	}
	if f.priority == id.priority {
		a.s.setIdentity(f, id)
		return
	}
	// A part with one share keeps it: its place in a list of one cannot change.
	var unlinked []func()
	for _, h := range f.tables {
		for id, sh := range h.shares {
			if o := h.table.parts[id]; len(o.fragments()) > 1 {
				a.s.relink(o, sh, false)
				unlinked = append(unlinked, func() { a.s.relink(o, sh, true) })
			}
		}
	}
	a.s.setIdentity(f, id)
	for _, relink := range unlinked {
		relink()
	}
}

// drop gives up what a fragment has in a table, except what is to be kept.
func (a *apply) drop(h *holding, keep map[objectID]bool) {
	for id := range h.shares {
		if !keep[id] {
			a.giveUp(h, id)
		}
	}
}

// leave gives up what a fragment has in a table, and the table.
func (a *apply) leave(h *holding) {
	a.drop(h, nil)
	a.s.release(h)
}

// withdraw removes a fragment with everything that it holds.
func (a *apply) withdraw(f *fragment) {
	shared := f.setsShared()
	for _, h := range f.tables {
		a.leave(h)
	}
	a.s.setFragment(f.key, nil)
	a.resolveUnclaimed(shared)
}

// table merges the part of an update in one table.
func (a *apply) table(f *fragment, tu *TableUpdate, snapshot bool) {
	h := a.s.hold(f, tu.Table)
	a.releaseUnclaimed(h.table)
	assignRecorded(a.s, nil, &h.comment, cmp.Or(tu.Comment, h.comment))
	if snapshot {
		a.setDormant(h, tu.Dormant)
	}
	gone := appendNames(slices.Clone(tu.DeleteObjects), kindFlowtable, tu.DeleteFlowtables)
	gone = appendNames(gone, kindChain, tu.DeleteChains)
	for _, id := range appendNames(gone, kindSet, tu.DeleteSets) {
		a.giveUp(h, id)
	}
	declared := a.declare(h, tu)
	if snapshot {
		a.drop(h, declared)
	}
	for i := range tu.Elements {
		a.elements(h, &tu.Elements[i])
	}
}

// declare makes the declarations of an update, and returns what they are of.
func (a *apply) declare(h *holding, tu *TableUpdate) map[objectID]bool {
	declared := make(map[objectID]bool, len(tu.PutObjects)+len(tu.PutFlowtables)+len(tu.PutSets)+len(tu.PutChains))
	for _, d := range tu.objectDecls() {
		declared[d.id()] = true
		a.putObject(h, d)
	}
	for i := range tu.PutSets {
		declared[setID(tu.PutSets[i].Decl.Name)] = true
		a.putSet(h, &tu.PutSets[i])
	}
	for i := range tu.PutChains {
		declared[chainID(tu.PutChains[i].Decl.Name)] = true
		a.putChain(h, &tu.PutChains[i])
	}
	return declared
}

// checkUses compares the declarations that an update was compiled against with
// the present ones.
func (a *apply) checkUses(tu *TableUpdate) {
	for name, d := range tu.Uses {
		// A set that is gone is left to the check of references.
		if o, ok := find[*set](a.s, tu.Table, setID(name)); ok && d != o.decl() && !d.Equal(o.decl()) {
			a.outdated(tu.Table, name)
		}
	}
}

// giveUp ends the fragment's share of a part, if it has one.
func (a *apply) giveUp(h *holding, id objectID) {
	if sh, ok := h.shares[id]; ok {
		enter(a.s, h.shares, id, nil, false)
		a.s.relink(h.table.parts[id], sh, false)
		a.disown(h.table.parts[id])
	}
}

// join gives a fragment a share of a part in which it has none.
func (a *apply) join(h *holding, o part, sh share) {
	a.s.relink(o, sh, true)
	enter(a.s, h.shares, o.base().id, sh, true)
}

// putChain declares a chain with all rules that the fragment has in it.
func (a *apply) putChain(h *holding, p *Chain) {
	o := h.table.chain(p.Decl.Name)
	agreed := agrees(a, h, o, o.shares, func(sh *chainShare) (string, bool) {
		if sh.fragment.unclaimed {
			return "", !updatable(sh.decl, p.Decl)
		}
		return "", !equalChain(sh.decl, p.Decl)
	})
	if !agreed {
		return
	}
	l := newRules(h.fragment, p.Rules, a.s.serial)
	if sh, ok := h.shares[o.id].(*chainShare); ok {
		if !equalChain(sh.decl, p.Decl) {
			redeclare(a.s, o, sh, &sh.decl, p.Decl, func(old, d *nftobject.Chain) {
				a.s.attach(o, old.Base, false)
				a.s.attach(o, d.Base, true)
			})
		}
		assign(a.s, &sh.source, p.Source)
		a.s.setRules(o, sh, l)
		return
	}
	a.s.work.Rules += uint64(len(l.rules))
	a.join(h, o, &chainShare{fragment: h.fragment, decl: p.Decl, source: p.Source, ruleList: l})
	if unclaimed := o.unclaimed(); unclaimed != nil && len(unclaimed.rules) == 0 {
		a.giveUp(a.s.unclaimed.tables[o.table.id], o.id)
	}
}

// putSet declares a set with all elements that the fragment has in it.
func (a *apply) putSet(h *holding, p *Set) {
	o := h.table.set(p.Decl.Name)
	agreed := agrees(a, h, o, o.shares, func(sh *setShare) (string, bool) {
		if sh.decl == p.Decl || sh.decl.Equal(p.Decl) {
			return "", false
		}
		return " (" + difference(sh.decl, p.Decl) + ")", true
	})
	if !agreed {
		return
	}
	if _, ok := backends.NewLayout(p.Decl); p.Conntrack && !ok {
		a.violate(ReasonInvalid, Place{Table: h.table.id, Kind: "map", Name: o.id.Name},
			"flows of map %s cannot be watched: its key must begin with [address .] inet_proto . inet_service, and its data be address . inet_service", o.id.Name)
		return
	}
	if p.Affinity && !(p.Decl.Map && packed.Dynamic(p.Decl)) {
		a.violate(ReasonInvalid, Place{Table: h.table.id, Kind: "map", Name: o.id.Name},
			"entries of map %s cannot be made by packets: declare it as a map with flags dynamic, or leave it out of the affinity maps", o.id.Name)
		return
	}
	if sh, ok := h.shares[o.id].(*setShare); ok {
		if packed.ShapeOf(sh.decl) != packed.ShapeOf(p.Decl) {
			a.giveUp(h, o.id)
			a.newSet(h, o, p)
			return
		}
		if sh.dumped || !sh.decl.Equal(p.Decl) {
			assign(a.s, &sh.dumped, false)
			a.s.redeclareSet(o, sh, p.Decl)
		}
		assign(a.s, &sh.source, p.Source)
		a.s.setConntrack(o, sh, p.Conntrack)
		assignRecorded(a.s, o, &sh.affinity, p.Affinity)
		a.replaceElements(o, sh, p.Elements)
		return
	}
	a.newSet(h, o, p)
}

// newSet makes a share of a set in which the fragment had none, or one with
// elements of another shape.
func (a *apply) newSet(h *holding, o *set, p *Set) {
	sh := &setShare{fragment: h.fragment, decl: p.Decl, source: p.Source, conntrack: p.Conntrack, affinity: p.Affinity, origin: a.s.origin, fresh: p.Elements}
	if sh.elements = a.s.packed(o, p); sh.elements == nil {
		sh.elements = packed.New(p.Decl, len(p.Elements))
		for i := range p.Elements {
			sh.elements.Put(packed.ID(p.Decl, &p.Elements[i]), &p.Elements[i])
		}
	}
	if sh.elements.Len() != len(p.Elements) {
		sh.fresh = nil
	}
	sh.weigh()
	a.s.work.Keys += uint64(len(p.Elements))
	a.join(h, o, sh)
	a.s.restateAll(o, sh)
}

// replaceElements replaces all elements of a share.
func (a *apply) replaceElements(o *set, sh *setShare, elems []nftset.Element) {
	last := make(map[string]int, len(elems))
	for i := range elems {
		last[packed.ID(sh.decl, &elems[i])] = i
	}
	var gone []string
	for id := range sh.elements.All() {
		if _, ok := last[id]; !ok {
			gone = append(gone, id)
		}
	}
	a.s.expect(o, len(gone)+max(len(last)-sh.elements.Len()+len(gone), 0))
	for _, id := range gone {
		a.s.put(o, sh, id, nftset.Element{}, false)
	}
	for id, i := range last {
		a.s.put(o, sh, id, elems[i], true)
	}
}

// elements applies a change of elements.
func (a *apply) elements(h *holding, eu *Elements) {
	sh, ok := h.shares[setID(eu.Set)].(*setShare)
	if !ok {
		a.violate(ReasonReference, Place{Table: h.table.id, Kind: "set", Name: eu.Set}, "fragment %s does not declare set %s: declare it before changing its elements",
			h.fragment.key, eu.Set)
		return
	}
	if eu.Decl != nil && eu.Decl != sh.decl && !eu.Decl.Equal(sh.decl) {
		a.outdated(h.table.id, eu.Set)
		return
	}
	o := h.table.set(eu.Set)
	if !a.mayShare(h, o) {
		return
	}
	for i := range eu.Remove {
		a.s.put(o, sh, packed.ID(sh.decl, &eu.Remove[i]), nftset.Element{}, false)
	}
	for i := range eu.Add {
		a.s.put(o, sh, packed.ID(sh.decl, &eu.Add[i]), eu.Add[i], true)
	}
}
