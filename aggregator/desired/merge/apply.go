package merge

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/backends"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Apply is one change in progress: made, then checked, and undone if invalid.
type Apply struct {
	s *State
	// F is nil until the fragment is found.
	F          *Fragment
	violations []desired.Violation
	// A nil grant allows all.
	grant desired.Grant
	// err is ErrStale, or the error of a Limit.
	err error
}

// Apply merges an update, or changes no state.
//
// Possible errors: *[desired.Rejection]; one that wraps [desired.ErrStale].
func (s *State) Apply(u *desired.Update) error {
	return s.Change(u.Fragment, func(a *Apply) { a.update(u) }, nil)
}

// ApplyWithin is Apply for a publisher with limits. It calls limit after a merge without
// violations, and grant for each part of another owner; a nil grant allows all. Neither may use the
// State.
//
// Possible errors: as Apply; limit's.
func (s *State) ApplyWithin(u *desired.Update, limit desired.Limit, grant desired.Grant) error {
	return s.Change(u.Fragment, func(a *Apply) {
		a.grant = grant
		a.update(u)
	}, limit)
}

// Change makes one change completely or not at all. limit may be nil.
func (s *State) Change(key desired.Key, f func(*Apply), limit desired.Limit) error {
	before := s.Usage(key.Publisher)
	// Prices outdated by an undone change come first: they are not an effect of this change.
	s.Paths.Evaluate()
	s.Paths.grown, s.Paths.attached = s.Paths.grown[:0], s.Paths.attached[:0]
	mark := len(s.undo)
	s.serial++
	s.checks = s.checks[:0]
	s.Plan = nil
	a := &Apply{s: s}
	f(a)
	a.checkReferences()
	a.checkRedeclared()
	s.Paths.Evaluate()
	if a.err == nil && len(a.violations) == 0 && limit != nil {
		a.err = limit(before, s.Usage(key.Publisher), s.Paths.effect(key.Publisher))
	}
	if a.err == nil && len(a.violations) == 0 {
		s.Origin++
		return nil
	}
	s.undoTo(mark)
	if mark == 0 && s.Origin == 0 {
		s.Rollback()
	}
	if a.err != nil {
		return a.err
	}
	return &desired.Rejection{Fragment: key, Violations: a.violations}
}

func (a *Apply) violate(reason desired.Reason, at desired.Place, format string, args ...any) {
	if len(a.violations) < desired.MaxViolations {
		a.violations = append(a.violations, desired.Violation{Object: at, Message: fmt.Sprintf(format, args...), Reason: reason})
	}
}

func (a *Apply) outdated(id nft.TableID, name string) {
	if a.err == nil {
		a.err = fmt.Errorf("apply fragment %s: table %s set %s: %w", a.F.Key, id, name, desired.ErrStale)
	}
}

func (a *Apply) update(u *desired.Update) {
	f := a.s.Fragments[u.Fragment]
	switch {
	case !u.Snapshot && (f == nil || f.Adopted):
		a.violations = append(a.violations, desired.Violation{
			Message: "a patch needs the fragment's snapshot before it: publish one",
			Reason:  desired.ReasonSnapshotNeeded,
		})
		return
	case u.Snapshot && len(u.Tables) == 0:
		if f != nil {
			a.F = f
			a.Withdraw(f)
		}
		return
	case f == nil:
		f = NewFragment(u.Fragment, identityOf(u))
		a.s.setFragment(u.Fragment, f)
	}
	a.F = f
	var shared []*Set
	if u.Snapshot {
		shared = f.setsShared()
		a.identify(f, identityOf(u))
		for id, h := range f.Tables {
			if !slices.ContainsFunc(u.Tables, func(tu desired.TableUpdate) bool { return tu.Table == id }) {
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

func (a *Apply) identify(f *Fragment, id Identity) {
	if f.Identity == id {
		return
	}
	if f.Priority == id.Priority {
		f.setIdentity(a.s, id)
		return
	}
	// A part with one share keeps its order.
	var unlinked []func()
	for _, h := range f.Tables {
		for id, sh := range h.Shares {
			if o := h.Table.Parts[id]; len(o.Fragments()) > 1 {
				a.s.relink(o, sh, false)
				unlinked = append(unlinked, func() { a.s.relink(o, sh, true) })
			}
		}
	}
	f.setIdentity(a.s, id)
	for _, relink := range unlinked {
		relink()
	}
}

func (a *Apply) drop(h *Holding, keep map[ObjectID]bool) {
	for id := range h.Shares {
		if !keep[id] {
			a.giveUp(h, id)
		}
	}
}

func (a *Apply) leave(h *Holding) {
	a.drop(h, nil)
	h.release(a.s)
}

func (a *Apply) Withdraw(f *Fragment) {
	shared := f.setsShared()
	for _, h := range f.Tables {
		a.leave(h)
	}
	a.s.setFragment(f.Key, nil)
	a.resolveUnclaimed(shared)
}

func (a *Apply) table(f *Fragment, tu *desired.TableUpdate, snapshot bool) {
	h := f.Hold(a.s, tu.Table)
	a.releaseUnclaimed(h.Table)
	assignRecorded(a.s, nil, &h.Comment, cmp.Or(tu.Comment, h.Comment))
	if snapshot {
		a.setDormant(h, tu.Dormant)
	}
	gone := AppendNames(slices.Clone(tu.DeleteObjects), KindFlowtable, tu.DeleteFlowtables)
	gone = AppendNames(gone, KindChain, tu.DeleteChains)
	for _, id := range AppendNames(gone, KindSet, tu.DeleteSets) {
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

func (a *Apply) declare(h *Holding, tu *desired.TableUpdate) map[ObjectID]bool {
	declared := make(map[ObjectID]bool, len(tu.PutObjects)+len(tu.PutFlowtables)+len(tu.PutSets)+len(tu.PutChains))
	for _, d := range ObjectDecls(tu) {
		declared[d.ID()] = true
		a.putObject(h, d)
	}
	for i := range tu.PutSets {
		declared[SetID(tu.PutSets[i].Decl.Name)] = true
		a.putSet(h, &tu.PutSets[i])
	}
	for i := range tu.PutChains {
		declared[ChainID(tu.PutChains[i].Decl.Name)] = true
		a.putChain(h, &tu.PutChains[i])
	}
	return declared
}

func (a *Apply) checkUses(tu *desired.TableUpdate) {
	for name, d := range tu.Uses {
		// checkReferences finds a missing set.
		if o, ok := Find[*Set](a.s, tu.Table, SetID(name)); ok && d != o.Decl() && !d.Equal(o.Decl()) {
			a.outdated(tu.Table, name)
		}
	}
}

// giveUp removes a share; join adds one.
func (a *Apply) giveUp(h *Holding, id ObjectID) {
	if sh, ok := h.Shares[id]; ok {
		enter(&a.s.journal, h.Shares, id, nil, false)
		a.s.relink(h.Table.Parts[id], sh, false)
		a.disown(h.Table.Parts[id])
	}
}

func (a *Apply) join(h *Holding, o Part, sh Share) {
	a.s.relink(o, sh, true)
	enter(&a.s.journal, h.Shares, o.Base().ID, sh, true)
}

func (a *Apply) putChain(h *Holding, p *desired.Chain) {
	o := h.Table.Chain(p.Decl.Name)
	agreed := agrees(a, h, o, o.Shares, func(sh *ChainShare) (string, bool) {
		if sh.Fragment.Unclaimed {
			return "", !Updatable(sh.Decl, p.Decl)
		}
		return "", !EqualChain(sh.Decl, p.Decl)
	})
	if !agreed {
		return
	}
	l := newRules(h.Fragment, p.Rules, a.s.serial)
	if sh, ok := h.Shares[o.ID].(*ChainShare); ok {
		if !EqualChain(sh.Decl, p.Decl) {
			redeclare(a.s, o, sh, &sh.Decl, p.Decl, func(old, d *nftobject.Chain) {
				a.s.Paths.attach(o, old.Base, false)
				a.s.Paths.attach(o, d.Base, true)
			})
		}
		assign(&a.s.journal, &sh.Source, p.Source)
		o.setRules(a.s, sh, l)
		return
	}
	a.s.Looked.Rules += uint64(len(l.Rules))
	a.join(h, o, &ChainShare{Fragment: h.Fragment, Decl: p.Decl, Source: p.Source, ruleList: l})
	if unclaimed := o.unclaimed(); unclaimed != nil && len(unclaimed.Rules) == 0 {
		a.giveUp(a.s.Unclaimed.Tables[o.Table.ID], o.ID)
	}
}

func (a *Apply) putSet(h *Holding, p *desired.Set) {
	o := h.Table.Set(p.Decl.Name)
	agreed := agrees(a, h, o, o.Shares, func(sh *SetShare) (string, bool) {
		if sh.Decl == p.Decl || sh.Decl.Equal(p.Decl) {
			return "", false
		}
		return " (" + difference(sh.Decl, p.Decl) + ")", true
	})
	if !agreed {
		return
	}
	if _, ok := backends.NewLayout(p.Decl); p.Conntrack && !ok {
		a.violate(desired.ReasonInvalid, desired.Place{Table: h.Table.ID, Kind: "map", Name: o.ID.Name},
			"flows of map %s cannot be watched: its key must begin with [address .] inet_proto . inet_service, and its data be address . inet_service", o.ID.Name)
		return
	}
	if p.Affinity && !(p.Decl.Map && packed.Dynamic(p.Decl)) {
		a.violate(desired.ReasonInvalid, desired.Place{Table: h.Table.ID, Kind: "map", Name: o.ID.Name},
			"entries of map %s cannot be made by packets: declare it as a map with flags dynamic, or leave it out of the affinity maps", o.ID.Name)
		return
	}
	if sh, ok := h.Shares[o.ID].(*SetShare); ok {
		if packed.ShapeOf(sh.Decl) != packed.ShapeOf(p.Decl) {
			a.giveUp(h, o.ID)
			a.newSet(h, o, p)
			return
		}
		if sh.Dumped || !sh.Decl.Equal(p.Decl) {
			assign(&a.s.journal, &sh.Dumped, false)
			sh.redeclare(a.s, o, p.Decl)
		}
		assign(&a.s.journal, &sh.Source, p.Source)
		sh.setConntrack(a.s, o, p.Conntrack)
		assignRecorded(a.s, o, &sh.Affinity, p.Affinity)
		a.replaceElements(o, sh, p.Elements)
		return
	}
	a.newSet(h, o, p)
}

// newSet makes a new share, or one with elements of another shape.
func (a *Apply) newSet(h *Holding, o *Set, p *desired.Set) {
	sh := &SetShare{Fragment: h.Fragment, Decl: p.Decl, Source: p.Source, Conntrack: p.Conntrack, Affinity: p.Affinity, Origin: a.s.Origin, Fresh: p.Elements}
	if sh.Elements = a.s.stagedElements(o, p); sh.Elements == nil {
		sh.Elements = packed.New(p.Decl, len(p.Elements))
		for i := range p.Elements {
			sh.Elements.Put(packed.ID(p.Decl, &p.Elements[i]), &p.Elements[i])
		}
	}
	if sh.Elements.Len() != len(p.Elements) {
		sh.Fresh = nil
	}
	sh.Weigh()
	a.s.Looked.Keys += uint64(len(p.Elements))
	a.join(h, o, sh)
	sh.restateAll(a.s, o)
}

func (a *Apply) replaceElements(o *Set, sh *SetShare, elems []nftset.Element) {
	last := make(map[string]int, len(elems))
	for i := range elems {
		last[packed.ID(sh.Decl, &elems[i])] = i
	}
	var gone []string
	for id := range sh.Elements.All() {
		if _, ok := last[id]; !ok {
			gone = append(gone, id)
		}
	}
	n := len(gone) + max(len(last)-sh.Elements.Len()+len(gone), 0)
	a.s.undo = slices.Grow(a.s.undo, n)
	if len(o.Touched) == 0 && n > keepTouched {
		o.Touched = make(map[string]Touch, n)
	}
	for _, id := range gone {
		sh.put(a.s, o, id, nftset.Element{}, false)
	}
	for id, i := range last {
		sh.put(a.s, o, id, elems[i], true)
	}
}

func (a *Apply) elements(h *Holding, eu *desired.Elements) {
	sh, ok := h.Shares[SetID(eu.Set)].(*SetShare)
	if !ok {
		a.violate(desired.ReasonReference, desired.Place{Table: h.Table.ID, Kind: "set", Name: eu.Set}, "fragment %s does not declare set %s: declare it before changing its elements",
			h.Fragment.Key, eu.Set)
		return
	}
	if eu.Decl != nil && eu.Decl != sh.Decl && !eu.Decl.Equal(sh.Decl) {
		a.outdated(h.Table.ID, eu.Set)
		return
	}
	o := h.Table.Set(eu.Set)
	if !a.mayShare(h, o) {
		return
	}
	for i := range eu.Remove {
		sh.put(a.s, o, packed.ID(sh.Decl, &eu.Remove[i]), nftset.Element{}, false)
	}
	for i := range eu.Add {
		sh.put(a.s, o, packed.ID(sh.Decl, &eu.Add[i]), eu.Add[i], true)
	}
}
