package desired

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
)

// The kinds of chains, sets and flowtables, beside those of named objects.
const (
	kindChain     nft.ObjectKind = "chain"
	kindSet       nft.ObjectKind = "set"
	kindFlowtable nft.ObjectKind = "flowtable"
)

// part is a chain, a set or map, or a named object or flowtable of a table.
type part interface {
	base() *node
	exists() bool
	at() Place
	// declared returns the declaration: a *nftobject.Chain, a *nftset.Set or an
	// objectDecl.
	declared() any
	// remade reports whether a part with the declaration before must be deleted and
	// added again, because the kernel cannot change it in place.
	remade(before any) bool
	// addition returns the op that adds the part.
	addition() kernel.Op
	// removal returns the ops that delete the part with the declaration before.
	removal(before any) []kernel.Op
	// fragments returns the fragments with a share, in order of precedence.
	fragments() []*fragment
	// link adds a share or removes it, with everything that is counted from it. It is
	// its own inverse. With journal, it also remembers which elements it changes.
	link(s *State, sh share, in, journal bool)
	// accept makes the present state the kernel's, except the declaration.
	accept(plan *decision)
	// clearChanges forgets what is known of the changes since the last Accept.
	clearChanges()
}

// node is what all kinds of parts have.
type node struct {
	id    objectID
	table *table
	// kernel is the declaration in the kernel as of the last Accept, nil if it is
	// not there.
	kernel any
	// owner is the publisher that owns the part, if that was recorded: see
	// apply.mayShare.
	owner string
	// refs counts the shares of chains, and the elements of maps, that refer to the
	// part. Shadowed elements count.
	refs int
	// origin is the last update since the last Accept that changed the
	// declaration or the shares, -1 if none did.
	origin int
	dirty  bool
	// queued is the serial of the change that has queued a check.
	queued uint64
	// callers lead packets here: it counts the shares of a chain, the elements of a map. outdated, round, active and
	// loops are for evaluate.
	callers       map[caller]int
	outdated      bool
	round         uint64
	active, loops bool
}

func (o *node) base() *node { return o }

func (o *node) at() Place {
	return Place{Table: o.table.id, Kind: string(o.id.Kind), Name: o.id.Name}
}

// compareParts orders parts by table, kind and name.
func compareParts(a, b part) int {
	x, y := a.base(), b.base()
	return cmp.Or(compareTables(x.table.id, y.table.id), compareObjectIDs(x.id, y.id))
}

// part returns the part of a table with an ID, made when it is new.
func (t *table) part(id objectID) part {
	o, ok := t.parts[id]
	if !ok {
		switch id.Kind {
		case kindChain:
			o = &chain{}
		case kindSet:
			o = &set{}
			t.sets.Named++
		default:
			o = &object{}
		}
		*o.base() = node{id: id, table: t, origin: -1}
		t.parts[id] = o
	}
	return o
}

func (t *table) chain(name string) *chain { return t.part(chainID(name)).(*chain) }

func (t *table) set(name string) *set { return t.part(setID(name)).(*set) }

func (t *table) object(id objectID) *object { return t.part(id).(*object) }

func chainID(name string) objectID { return objectID{Kind: kindChain, Name: name} }

func setID(name string) objectID { return objectID{Kind: kindSet, Name: name} }

// sortedParts returns all parts of a table in order.
func (t *table) sortedParts() []part {
	return slices.SortedFunc(maps.Values(t.parts), compareParts)
}

// share is what one fragment declares of an object.
type share interface {
	owner() *fragment
	usage() Usage
}

func (sh *chainShare) owner() *fragment { return sh.fragment }

func (sh *setShare) owner() *fragment { return sh.fragment }

func (sh *objectShare) owner() *fragment { return sh.fragment }

// shared is an object with the shares of its fragments, in order of precedence.
// The object exists while there is a share.
type shared[S interface {
	comparable
	share
}] struct {
	node
	shares []S
}

func (o *shared[S]) exists() bool { return len(o.shares) > 0 }

// unclaimed returns the share of no fragment, which is always the last, or nil.
func (o *shared[S]) unclaimed() (none S) {
	if n := len(o.shares); n > 0 && o.shares[n-1].owner().unclaimed {
		return o.shares[n-1]
	}
	return none
}

// awaited reports whether a fragment with a share has not come back since the
// restart.
func (o *shared[S]) awaited() bool {
	return slices.ContainsFunc(o.shares, func(sh S) bool { return sh.owner().adopted })
}

// place adds a share in its order, or removes it, and counts its usage. It is
// its own inverse and writes no journal.
func (o *shared[S]) place(s *State, sh S, in bool) {
	if !in {
		i := slices.Index(o.shares, sh)
		o.shares = slices.Delete(o.shares, i, i+1)
		s.charge(sh.owner(), sh.usage(), -1)
		return
	}
	i := 0
	for i < len(o.shares) && o.shares[i].owner().compare(sh.owner()) < 0 {
		i++
	}
	o.shares = slices.Insert(o.shares, i, sh)
	s.charge(sh.owner(), sh.usage(), +1)
}

// fragments returns the fragments with a share.
func (o *shared[S]) fragments() []*fragment {
	all := make([]*fragment, 0, len(o.shares))
	for _, sh := range o.shares {
		all = append(all, sh.owner())
	}
	return all
}

// agrees reports whether the fragment may share a part, and no other fragment's
// declaration of it differs from one to be made. differs compares it with that of a share, and describes the difference. If
// only the unclaimed fragment's differs, it gives up its share.
func agrees[S share](a *apply, h *holding, o part, shares []S, differs func(S) (string, bool)) bool {
	a.s.mark(o)
	a.s.work.Objects++
	if !a.mayShare(h, o) {
		return false
	}
	for _, sh := range shares {
		if sh.owner() == h.fragment {
			continue
		}
		difference, ok := differs(sh)
		switch {
		case !ok:
		case sh.owner().unclaimed:
			a.giveUp(a.s.unclaimed.tables[h.table.id], o.base().id)
			return true
		default:
			a.violate(ReasonConflict, o.at(), "declaration of %s contradicts that of %s%s: declare it alike or use another name",
				o.at().inTable(), sh.owner(), difference)
			return false
		}
	}
	return true
}

// mark adds a part to the dirty ones of its table, once.
func (s *State) mark(o part) {
	if n := o.base(); !n.dirty {
		n.dirty = true
		n.table.dirtyParts = append(n.table.dirtyParts, o)
		s.markTable(n.table)
	}
}

// check is a part that the running change must find in order in the end, with
// its declaration before the change; nil if it did not exist.
type check struct {
	part
	old any
}

// queue adds a check of a part, once for each change. It is called before the
// declaration changes.
func (s *State) queue(o part) {
	n := o.base()
	if n.queued == s.serial {
		return
	}
	n.queued = s.serial
	c := check{part: o}
	if o.exists() {
		c.old = o.declared()
	}
	s.checks = append(s.checks, c)
}

// refer counts references to a part. Marking it lets the next Accept or
// Rollback forget a target that does not exist in the end.
func (s *State) refer(o part, by int) {
	o.base().refs += by
	if !o.exists() {
		s.mark(o)
	}
	if by > 0 {
		s.queue(o)
	}
}

// sign is +1 for what is added, and -1 for what is removed.
func sign(in bool) int { return 2*count(in) - 1 }

// changed marks a part in which a fragment's share changes, and makes the running
// update the origin of the change.
func (s *State) changed(o part, f *fragment) {
	s.mark(o)
	s.stamp(&o.base().origin)
	if o, ok := o.(*chain); ok {
		s.stampOwner(o, f.owner)
	}
}

// relink adds a share to its part or removes it, with the journal.
func (s *State) relink(o part, sh share, in bool) {
	s.changed(o, sh.owner())
	s.link(o, sh, in, true)
	s.undo = append(s.undo, func() { s.link(o, sh, !in, false) })
	if o, ok := o.(*set); ok && in {
		s.claimAll(o, sh.(*setShare))
	}
}

// link adds a share to its part or removes it. It is its own inverse.
func (s *State) link(o part, sh share, in, journal bool) {
	s.work.Objects++
	s.queue(o)
	o.link(s, sh, in, journal)
	s.declared(o)
}

// redeclare changes a share's declaration, which is at the address given. after, if
// it is not nil, makes the changes that follow from it.
func redeclare[D any](s *State, o part, sh share, at *D, d D, after func(old, d D)) {
	s.changed(o, sh.owner())
	s.queue(o)
	do(s, func(d D) {
		old := *at
		s.charge(sh.owner(), sh.usage(), -1)
		*at = d
		if sh, ok := sh.(*setShare); ok {
			sh.measure()
		}
		s.charge(sh.owner(), sh.usage(), +1)
		if after != nil {
			after(old, d)
		}
		s.declared(o)
	}, d, *at)
}
