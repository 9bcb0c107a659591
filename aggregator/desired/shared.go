package desired

import (
	"cmp"
	"iter"
	"slices"

	"github.com/weft-proxy/weft/nft"
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
	// accept makes the present state the kernel's, except the declaration.
	accept(plan *decision)
	// clearChanges forgets what is known of the changes since the last Accept.
	clearChanges()
	// forget removes the part from its table.
	forget()
}

// node is what all kinds of parts have.
type node struct {
	id    objectID
	table *table
	// kernel is the declaration in the kernel as of the last Accept, nil if it is
	// not there.
	kernel any
	// refs counts the shares of chains, and the elements of maps, that refer to the
	// part. Shadowed elements count.
	refs int
	// origin is the last update since the last Accept that changed the
	// declaration or the shares, -1 if none did.
	origin int
	dirty  bool
	// queued is the serial of the change that has queued a check.
	queued uint64
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
	switch id.Kind {
	case kindChain:
		return t.chain(id.Name)
	case kindSet:
		return t.set(id.Name)
	default:
		return t.object(id)
	}
}

// parts returns all parts of a table in order.
func (t *table) parts() []part {
	all := make([]part, 0, len(t.chains)+len(t.sets)+len(t.objects))
	for _, o := range t.chains {
		all = append(all, o)
	}
	for _, o := range t.sets {
		all = append(all, o)
	}
	for _, o := range t.objects {
		all = append(all, o)
	}
	slices.SortFunc(all, compareParts)
	return all
}

// parts returns the parts of a table that the fragment has a share in, in no order.
func (h *holding) parts() iter.Seq[part] {
	return func(yield func(part) bool) {
		for name := range h.chains {
			if !yield(h.table.chains[name]) {
				return
			}
		}
		for name := range h.sets {
			if !yield(h.table.sets[name]) {
				return
			}
		}
		for id := range h.objects {
			if !yield(h.table.objects[id]) {
				return
			}
		}
	}
}

// share is what one fragment declares of an object.
type share interface {
	comparable
	owner() *fragment
	usage() Usage
}

func (sh *chainShare) owner() *fragment  { return sh.fragment }
func (sh *setShare) owner() *fragment    { return sh.fragment }
func (sh *objectShare) owner() *fragment { return sh.fragment }

// shared is an object with the shares of its fragments, in order of precedence.
// The object exists while there is a share.
type shared[S share] struct {
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

// conflict returns the first share of another fragment whose declaration differs,
// or nil.
func (o *shared[S]) conflict(f *fragment, differs func(S) bool) (none S) {
	for _, sh := range o.shares {
		if sh.owner() != f && differs(sh) {
			return sh
		}
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

// keys returns the fragments with a share.
func (o *shared[S]) keys() []Key { return keysOf(o.shares, S.owner) }

// owners returns the fragments that have a share.
func (o *shared[S]) owners() []Owned {
	var owners []Owned
	for _, sh := range o.shares {
		owners = append(owners, sh.owner().owned())
	}
	return owners
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

// remove removes a fragment's share of an object from its holding, with the
// journal. It returns nil if there is none.
func remove[K comparable, S any](s *State, shares map[K]S, key K) (S, bool) {
	sh, ok := shares[key]
	if ok {
		delete(shares, key)
		s.undo = append(s.undo, func() { shares[key] = sh })
	}
	return sh, ok
}
