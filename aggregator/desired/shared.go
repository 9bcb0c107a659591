package desired

import (
	"cmp"
	"slices"
	"strings"
)

// node is the part of chains, sets and items that does not depend on their
// content.
type node struct {
	name  string
	table *table
	// refs counts the shares of chains, and for chains and items also the elements
	// of maps, that refer to the object. Shadowed elements count.
	refs int
	// origin is the last update since the last Accept that changed the
	// declaration or the shares, -1 if none did.
	origin int
	dirty  bool
	// queued is the serial of the change that has queued a check.
	queued uint64
}

// compare orders objects by table and name.
func (o *node) compare(other *node) int {
	return cmp.Or(compareTables(o.table.id, other.table.id), strings.Compare(o.name, other.name))
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

// orphan returns the share of no fragment, which is always the last, or nil.
func (o *shared[S]) orphan() (none S) {
	if n := len(o.shares); n > 0 && o.shares[n-1].owner().orphan {
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
	for i < len(o.shares) && o.shares[i].owner().before(sh.owner()) {
		i++
	}
	o.shares = slices.Insert(o.shares, i, sh)
	s.charge(sh.owner(), sh.usage(), +1)
}

// keys returns the fragments with a share.
func (o *shared[S]) keys() []Key {
	keys := make([]Key, 0, len(o.shares))
	for _, sh := range o.shares {
		if f := sh.owner(); !f.orphan {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// owners returns the fragments that have a share.
func (o *shared[S]) owners() []Owned {
	var owners []Owned
	for _, sh := range o.shares {
		owners = append(owners, sh.owner().owned())
	}
	return owners
}

// mark adds an object to the dirty ones of its table, once.
func mark[O any](s *State, n *node, o O, dirty *[]O) {
	if !n.dirty {
		n.dirty = true
		*dirty = append(*dirty, o)
		s.markTable(n.table)
	}
}

func (s *State) markChain(o *chain)   { mark(s, &o.node, o, &o.table.dirtyChains) }
func (s *State) markSet(o *set)       { mark(s, &o.node, o, &o.table.dirtySets) }
func (s *State) markObject(o *object) { mark(s, &o.node, o, &o.table.dirtyObjects) }

// clean makes dirty objects clean, and forgets those that are neither desired nor
// in the kernel.
func clean[K, O comparable, S share](dirty []O, objects map[K]O, part func(O) (*shared[S], K)) {
	for _, o := range dirty {
		n, key := part(o)
		n.dirty, n.origin = false, -1
		if !n.exists() && n.refs == 0 && objects[key] == o {
			delete(objects, key)
		}
	}
}

// check is an object that the running change must find in order in the end, with
// its declaration before the change; the zero value if it did not exist.
type check[O, D any] struct {
	object O
	old    D
}

// queue adds a check of an object, once for each change. It is called before the
// declaration changes.
func queue[S share, O interface{ decl() D }, D any](s *State, n *shared[S], o O, checks *[]check[O, D]) {
	if n.queued == s.serial {
		return
	}
	n.queued = s.serial
	c := check[O, D]{object: o}
	if n.exists() {
		c.old = o.decl()
	}
	*checks = append(*checks, c)
}

func (s *State) queueChain(o *chain)   { queue(s, &o.shared, o, &s.checkChains) }
func (s *State) queueSet(o *set)       { queue(s, &o.shared, o, &s.checkSets) }
func (s *State) queueObject(o *object) { queue(s, &o.shared, o, &s.checkObjects) }

// refer counts references to an object. Marking it lets the next Accept or
// Rollback forget a target that does not exist in the end.
func refer[S share](n *shared[S], by int, mark, queue func()) {
	n.refs += by
	if !n.exists() {
		mark()
	}
	if by > 0 {
		queue()
	}
}

func (s *State) referChain(o *chain, by int) {
	refer(&o.shared, by, func() { s.markChain(o) }, func() { s.queueChain(o) })
}

func (s *State) referSet(o *set, by int) {
	refer(&o.shared, by, func() { s.markSet(o) }, func() { s.queueSet(o) })
}

func (s *State) referObject(o *object, by int) {
	refer(&o.shared, by, func() { s.markObject(o) }, func() { s.queueObject(o) })
}

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
