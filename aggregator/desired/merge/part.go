package merge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// KindSet is also for maps. Named objects have the kinds of package nft.
const (
	KindChain     nft.ObjectKind = "chain"
	KindSet       nft.ObjectKind = "set"
	KindFlowtable nft.ObjectKind = "flowtable"
)

// Part is a *Chain, *Set or *Object.
type Part interface {
	Base() *node
	Exists() bool
	At() desired.Place
	// Declared returns a *nftobject.Chain, a *nftset.Set or an ObjectDecl.
	Declared() any
	// Remade reports whether the kernel cannot change the declaration from before in place: the
	// plan deletes and adds the part.
	Remade(before any) bool
	Addition() kernel.Op
	Removal(before any) []kernel.Op
	Fragments() []*Fragment
	// link adds or removes a share with all its counts, and is its own inverse. With journal, it
	// remembers changed elements.
	link(s *State, sh Share, in, journal bool)
	Accept(plan *Decision)
	clearChanges()
}

type node struct {
	ID    ObjectID
	Table *Table
	// Kernel is the declaration as of the last Accept, or nil.
	Kernel any
	// Owner is the owning publisher, if recorded: see Apply.mayShare.
	Owner string
	// Refs counts referring shares of chains and elements of maps, also shadowed ones.
	Refs int
	// Origin is the last update since Accept that changed the declaration or the shares, or -1.
	Origin int
	Dirty  bool
	queued uint64
	// Callers counts shares of chains and elements of maps that lead packets here. outdated, round,
	// active and loops are for Paths.Evaluate.
	Callers       map[caller]int
	outdated      bool
	round         uint64
	active, loops bool
}

func (o *node) Base() *node { return o }

func (o *node) At() desired.Place {
	return desired.Place{Table: o.Table.ID, Kind: string(o.ID.Kind), Name: o.ID.Name}
}

func CompareParts(a, b Part) int {
	x, y := a.Base(), b.Base()
	return cmp.Or(desired.CompareTables(x.Table.ID, y.Table.ID), compareObjectIDs(x.ID, y.ID))
}

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

func (t *Table) SortedParts() []Part {
	return slices.SortedFunc(maps.Values(t.Parts), CompareParts)
}

// Share is a *ChainShare, *SetShare or *ObjectShare.
type Share interface {
	Owner() *Fragment
	Usage() desired.Usage
}

func (sh *ChainShare) Owner() *Fragment { return sh.Fragment }

func (sh *SetShare) Owner() *Fragment { return sh.Fragment }

func (sh *ObjectShare) Owner() *Fragment { return sh.Fragment }

// shared is a part with shares in order of precedence. It exists while there is a share.
type shared[S interface {
	comparable
	Share
}] struct {
	node
	Shares []S
}

func (o *shared[S]) Exists() bool { return len(o.Shares) > 0 }

// unclaimed returns the unclaimed fragment's share, always the last, or nil.
func (o *shared[S]) unclaimed() (none S) {
	if n := len(o.Shares); n > 0 && o.Shares[n-1].Owner().Unclaimed {
		return o.Shares[n-1]
	}
	return none
}

// awaited reports whether an adopted fragment has a share.
func (o *shared[S]) awaited() bool {
	return slices.ContainsFunc(o.Shares, func(sh S) bool { return sh.Owner().Adopted })
}

// place adds or removes a share with its usage. It is its own inverse, without journal.
func (o *shared[S]) place(l *ledger, sh S, in bool) {
	if !in {
		i := slices.Index(o.Shares, sh)
		o.Shares = slices.Delete(o.Shares, i, i+1)
		l.charge(sh.Owner(), sh.Usage(), -1)
		return
	}
	i := 0
	for i < len(o.Shares) && o.Shares[i].Owner().Compare(sh.Owner()) < 0 {
		i++
	}
	o.Shares = slices.Insert(o.Shares, i, sh)
	l.charge(sh.Owner(), sh.Usage(), +1)
}

func (o *shared[S]) Fragments() []*Fragment {
	all := make([]*Fragment, 0, len(o.Shares))
	for _, sh := range o.Shares {
		all = append(all, sh.Owner())
	}
	return all
}

// agrees reports whether the fragment may share a part without contradiction. An unclaimed share
// that differs is given up.
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

// marks are the places of changes: since the last Accept, and (serial, checks) of the running change.
type marks struct {
	Dirty  []*Table
	checks []check
	// serial never restarts.
	serial uint64
	Looked desired.Work
}

func (m *marks) MarkTable(t *Table) {
	if !t.dirty {
		t.dirty = true
		m.Dirty = append(m.Dirty, t)
	}
}

func (m *marks) Mark(o Part) {
	if n := o.Base(); !n.Dirty {
		n.Dirty = true
		n.Table.DirtyParts = append(n.Table.DirtyParts, o)
		m.MarkTable(n.Table)
	}
}

// check is a part to check after the running change. old is the declaration before the change, or
// nil.
type check struct {
	Part
	old any
}

// queue adds a check once, before the declaration changes.
func (m *marks) queue(o Part) {
	n := o.Base()
	if n.queued == m.serial {
		return
	}
	n.queued = m.serial
	c := check{Part: o}
	if o.Exists() {
		c.old = o.Declared()
	}
	m.checks = append(m.checks, c)
}

// refer counts references. It marks a missing target, so that Reset can remove it.
func (m *marks) refer(o Part, by int) {
	o.Base().Refs += by
	if !o.Exists() {
		m.Mark(o)
	}
	if by > 0 {
		m.queue(o)
	}
}

func sign(in bool) int { return 2*Count(in) - 1 }

func (s *State) changed(o Part, f *Fragment) {
	s.Mark(o)
	s.stamp(&o.Base().Origin)
	if o, ok := o.(*Chain); ok {
		o.stampOwner(&s.journal, f.Owner)
	}
}

// relink is Link with journal, and claims the elements of a new share.
func (s *State) relink(o Part, sh Share, in bool) {
	s.changed(o, sh.Owner())
	s.Link(o, sh, in, true)
	s.onUndo(func() { s.Link(o, sh, !in, false) })
	if o, ok := o.(*Set); ok && in {
		sh.(*SetShare).claimAll(s, o)
	}
}

// Link adds or removes a share. It is its own inverse. For journal see Part.link.
func (s *State) Link(o Part, sh Share, in, journal bool) {
	s.Looked.Objects++
	s.queue(o)
	o.link(s, sh, in, journal)
	s.declared(o)
}

func redeclare[D any](s *State, o Part, sh Share, at *D, d D, after func(old, d D)) {
	s.changed(o, sh.Owner())
	s.queue(o)
	do(&s.journal, func(d D) {
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
