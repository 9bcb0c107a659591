package merge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// The kinds of chains, sets and flowtables, beside those of named objects.
const (
	KindChain     nft.ObjectKind = "chain"
	KindSet       nft.ObjectKind = "set"
	KindFlowtable nft.ObjectKind = "flowtable"
)

// Part is a chain, a set or map, or a named object or flowtable of a table.
type Part interface {
	Base() *node
	Exists() bool
	At() desired.Place
	// Declared returns the declaration: a *nftobject.Chain, a *nftset.Set or an
	// objectDecl.
	Declared() any
	// Remade reports whether a part with the declaration before must be deleted and
	// added again, because the kernel cannot change it in place.
	Remade(before any) bool
	// Addition returns the op that adds the part.
	Addition() kernel.Op
	// Removal returns the ops that delete the part with the declaration before.
	Removal(before any) []kernel.Op
	// Fragments returns the fragments with a share, in order of precedence.
	Fragments() []*Fragment
	// link adds a share or removes it, with everything that is counted from it. It is
	// its own inverse. With journal, it also remembers which elements it changes.
	link(s *State, sh Share, in, journal bool)
	// Accept makes the present state the kernel's, except the declaration.
	Accept(plan *Decision)
	// clearChanges forgets what is known of the changes since the last Accept.
	clearChanges()
}

// node is what all kinds of parts have.
type node struct {
	ID    ObjectID
	Table *Table
	// Kernel is the declaration in the kernel as of the last Accept, nil if it is
	// not there.
	Kernel any
	// Owner is the publisher that owns the part, if that was recorded: see
	// apply.mayShare.
	Owner string
	// Refs counts the shares of chains, and the elements of maps, that refer to the
	// part. Shadowed elements count.
	Refs int
	// Origin is the last update since the last Accept that changed the
	// declaration or the shares, -1 if none did.
	Origin int
	Dirty  bool
	// queued is the serial of the change that has queued a check.
	queued uint64
	// Callers lead packets here: it counts the shares of a chain, the elements of a map. outdated, round, active and
	// loops are for evaluate.
	Callers       map[caller]int
	outdated      bool
	round         uint64
	active, loops bool
}

func (o *node) Base() *node { return o }

func (o *node) At() desired.Place {
	return desired.Place{Table: o.Table.ID, Kind: string(o.ID.Kind), Name: o.ID.Name}
}

// CompareParts orders parts by table, kind and name.
func CompareParts(a, b Part) int {
	x, y := a.Base(), b.Base()
	return cmp.Or(desired.CompareTables(x.Table.ID, y.Table.ID), compareObjectIDs(x.ID, y.ID))
}

// Part returns the part of a table with an ID, made when it is new.
func (t *Table) Part(id ObjectID) Part {
	o, ok := t.Parts[id]
	if !ok {
		switch id.Kind {
		case KindChain:
			o = &Chain{}
		case KindSet:
			o = &Set{}
			t.Sets.Named++
		default:
			o = &Object{}
		}
		*o.Base() = node{ID: id, Table: t, Origin: -1}
		t.Parts[id] = o
	}
	return o
}

func (t *Table) Chain(name string) *Chain { return t.Part(ChainID(name)).(*Chain) }

func (t *Table) Set(name string) *Set { return t.Part(SetID(name)).(*Set) }

func (t *Table) Object(id ObjectID) *Object { return t.Part(id).(*Object) }

func ChainID(name string) ObjectID { return ObjectID{Kind: KindChain, Name: name} }

func SetID(name string) ObjectID { return ObjectID{Kind: KindSet, Name: name} }

// SortedParts returns all parts of a table in order.
func (t *Table) SortedParts() []Part {
	return slices.SortedFunc(maps.Values(t.Parts), CompareParts)
}

// Share is what one fragment declares of an object.
type Share interface {
	Owner() *Fragment
	Usage() desired.Usage
}

func (sh *ChainShare) Owner() *Fragment { return sh.Fragment }

func (sh *SetShare) Owner() *Fragment { return sh.Fragment }

func (sh *ObjectShare) Owner() *Fragment { return sh.Fragment }

// shared is an object with the shares of its fragments, in order of precedence.
// The object exists while there is a share.
type shared[S interface {
	comparable
	Share
}] struct {
	node
	Shares []S
}

func (o *shared[S]) Exists() bool { return len(o.Shares) > 0 }

// unclaimed returns the share of no fragment, which is always the last, or nil.
func (o *shared[S]) unclaimed() (none S) {
	if n := len(o.Shares); n > 0 && o.Shares[n-1].Owner().Unclaimed {
		return o.Shares[n-1]
	}
	return none
}

// awaited reports whether a fragment with a share has not come back since the
// restart.
func (o *shared[S]) awaited() bool {
	return slices.ContainsFunc(o.Shares, func(sh S) bool { return sh.Owner().Adopted })
}

// place adds a share in its order, or removes it, and counts its usage. It is
// its own inverse and writes no journal.
func (o *shared[S]) place(s *State, sh S, in bool) {
	if !in {
		i := slices.Index(o.Shares, sh)
		o.Shares = slices.Delete(o.Shares, i, i+1)
		s.charge(sh.Owner(), sh.Usage(), -1)
		return
	}
	i := 0
	for i < len(o.Shares) && o.Shares[i].Owner().Compare(sh.Owner()) < 0 {
		i++
	}
	o.Shares = slices.Insert(o.Shares, i, sh)
	s.charge(sh.Owner(), sh.Usage(), +1)
}

// fragments returns the fragments with a share.
func (o *shared[S]) Fragments() []*Fragment {
	all := make([]*Fragment, 0, len(o.Shares))
	for _, sh := range o.Shares {
		all = append(all, sh.Owner())
	}
	return all
}

// agrees reports whether the fragment may share a part, and no other fragment's
// declaration of it differs from one to be made. differs compares it with that of a share, and describes the difference. If
// only the unclaimed fragment's differs, it gives up its share.
func agrees[S Share](a *Apply, h *Holding, o Part, shares []S, differs func(S) (string, bool)) bool {
	a.s.Mark(o)
	a.s.Looked.Objects++
	if !a.mayShare(h, o) {
		return false
	}
	for _, sh := range shares {
		if sh.Owner() == h.Fragment {
			continue
		}
		difference, ok := differs(sh)
		switch {
		case !ok:
		case sh.Owner().Unclaimed:
			a.giveUp(a.s.Unclaimed.Tables[h.Table.ID], o.Base().ID)
			return true
		default:
			a.violate(desired.ReasonConflict, o.At(), "declaration of %s contradicts that of %s%s: declare it alike or use another name",
				o.At().InTable(), sh.Owner(), difference)
			return false
		}
	}
	return true
}

// Mark adds a part to the dirty ones of its table, once.
func (s *State) Mark(o Part) {
	if n := o.Base(); !n.Dirty {
		n.Dirty = true
		n.Table.DirtyParts = append(n.Table.DirtyParts, o)
		s.MarkTable(n.Table)
	}
}

// check is a part that the running change must find in order in the end, with
// its declaration before the change; nil if it did not exist.
type check struct {
	Part
	old any
}

// queue adds a check of a part, once for each change. It is called before the
// declaration changes.
func (s *State) queue(o Part) {
	n := o.Base()
	if n.queued == s.serial {
		return
	}
	n.queued = s.serial
	c := check{Part: o}
	if o.Exists() {
		c.old = o.Declared()
	}
	s.checks = append(s.checks, c)
}

// refer counts references to a part. Marking it lets the next Accept or
// Rollback forget a target that does not exist in the end.
func (s *State) refer(o Part, by int) {
	o.Base().Refs += by
	if !o.Exists() {
		s.Mark(o)
	}
	if by > 0 {
		s.queue(o)
	}
}

// sign is +1 for what is added, and -1 for what is removed.
func sign(in bool) int { return 2*Count(in) - 1 }

// changed marks a part in which a fragment's share changes, and makes the running
// update the origin of the change.
func (s *State) changed(o Part, f *Fragment) {
	s.Mark(o)
	s.stamp(&o.Base().Origin)
	if o, ok := o.(*Chain); ok {
		s.stampOwner(o, f.Owner)
	}
}

// relink adds a share to its part or removes it, with the journal.
func (s *State) relink(o Part, sh Share, in bool) {
	s.changed(o, sh.Owner())
	s.Link(o, sh, in, true)
	s.undo = append(s.undo, func() { s.Link(o, sh, !in, false) })
	if o, ok := o.(*Set); ok && in {
		s.claimAll(o, sh.(*SetShare))
	}
}

// Link adds a share to its part or removes it. It is its own inverse.
func (s *State) Link(o Part, sh Share, in, journal bool) {
	s.Looked.Objects++
	s.queue(o)
	o.link(s, sh, in, journal)
	s.declared(o)
}

// redeclare changes a share's declaration, which is at the address given. after, if
// it is not nil, makes the changes that follow from it.
func redeclare[D any](s *State, o Part, sh Share, at *D, d D, after func(old, d D)) {
	s.changed(o, sh.Owner())
	s.queue(o)
	do(s, func(d D) {
		old := *at
		s.charge(sh.Owner(), sh.Usage(), -1)
		*at = d
		if sh, ok := sh.(*SetShare); ok {
			sh.measure()
		}
		s.charge(sh.Owner(), sh.Usage(), +1)
		if after != nil {
			after(old, d)
		}
		s.declared(o)
	}, d, *at)
}
