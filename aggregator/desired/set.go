package desired

import (
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// set is the merge of one set or map: the shares in order of precedence. For
// each key the first share that has it decides. There is no merged copy.
type set struct {
	shared[*setShare]
	// touched has the keys whose merged element has changed since the last
	// Accept. Where kernel is nil nothing was there before, and it only says
	// which update an element comes from that is not its share's first.
	touched map[string]touch
	// conflicts has the keys that several fragments state, so that it matters
	// which of them decides: see disagree.
	conflicts map[string]struct{}
	// union is the number of different keys of all shares, if there are several.
	union int
	// merge is the union of the elements of a set with auto-merge, nil in other sets.
	merge *packed.Union[*setShare]
	// pools is the index of UDP backends; nil unless a share wants it. watched
	// says that it was there at the last Accept.
	pools   *pools
	watched bool
	// written counts the rules that write to the map. purged says that it was an
	// affinity map at the last Accept.
	written written
	purged  bool
	// values counts the rules that write keys of this set as values of a map, by map.
	values map[*set]int
	// routes has where a verdict map sends packets; nil if nowhere.
	routes *routes
	// lookup is the time of a lookup as of the last evaluate; resized that it may have changed.
	lookup  int
	resized bool
}

// touch is the kernel's element of a key, and the last update that changed the
// merged element.
type touch struct {
	before nftset.Element
	had    bool
	// flows is true if the flows of the kernel's element are watched.
	flows bool
	// due is when the kernel's element expires, 0 if it does not.
	due    time.Duration
	origin int
}

// setShare is one fragment's share of a set.
type setShare struct {
	fragment *fragment
	decl     *nftset.Set
	// source is the declaration as its publisher wrote it; nil if that is not
	// known.
	source *nft.Set
	// dumped is true while decl comes from the kernel.
	dumped              bool
	conntrack, affinity bool
	elements            *packed.Elements
	// due has the elements that expire.
	due map[string]due
	// bytes is the size of the elements for Usage, content what their memory depends on.
	bytes   int
	content cost.Content
	// origin is the update that brought the share, -1 after the next Accept. fresh
	// are the elements that it brought, in its order. It is nil after that, and if
	// a key was repeated.
	origin int
	fresh  []nftset.Element
	// shadowed counts elements whose data another share's hides.
	shadowed int

	// waiting and passive are for the share of the unclaimed fragment. A waiting one holds
	// elements that recorded fragments may still own, and is dropped when all of
	// them have come back. A passive one holds elements that packets may have put
	// in: it is dropped without deleting them.
	waiting, passive bool

	// won are the keys that were recorded as won before a restart: see
	// SetRecord.Wins.
	won [][]byte
}

func (sh *setShare) Packed() *packed.Elements { return sh.elements }

// claimable reports whether a fragment that states an element of the unclaimed fragment's
// share becomes its only owner.
func (sh *setShare) claimable() bool { return sh.fragment.unclaimed && (!sh.waiting || sh.passive) }

// flows reports whether the flows of the share's elements are watched, if those of any share
// of the set are. The elements of the unclaimed fragment may be those of any fragment.
func (sh *setShare) flows() bool { return sh.conntrack || sh.fragment.unclaimed }

// change is a change of the merged element of a key.
type change struct {
	before, after nftset.Element
	// from is the share that decided on the key before, to the one that does now.
	from, to *setShare
	had, has bool
	// renewed is true if the deciding fragment states an element with a timeout again.
	renewed bool
}

// decl is the declaration. All shares agree on it, but one that comes from a
// dump knows less of it. While the elements of the last share leave the union, there is no share.
func (o *set) decl() *nftset.Set {
	if len(o.shares) == 0 {
		return o.merge.Decl
	}
	for _, sh := range o.shares {
		if !sh.dumped {
			return sh.decl
		}
	}
	return o.shares[0].decl
}

// effective returns the element of a key that the kernel is to have.
func (o *set) effective(id string) (nftset.Element, bool) {
	e, _, ok := o.wanted(id)
	return e, ok
}

// wanted returns the element of a key that the kernel is to have, and the share that decides on it: nil
// for the union of a set with auto-merge.
func (o *set) wanted(id string) (nftset.Element, *setShare, bool) {
	e, sh, ok := o.decided(id)
	if o.merge == nil {
		return e, sh, ok
	}
	if merged, ok := o.merge.Get(id); ok {
		return merged, nil, true
	}
	return e, sh, ok && o.merge.Apart(id, &e)
}

// decided returns the merged element of a key and the share that decides on it.
func (o *set) decided(id string) (nftset.Element, *setShare, bool) {
	for _, sh := range o.shares {
		if e, ok := sh.elements.Get(id); ok {
			return e, sh, true
		}
	}
	return nftset.Element{}, nil, false
}

// winner returns the share that decides on a key.
func (o *set) winner(id string) *setShare {
	for _, sh := range o.shares {
		if sh.elements.Has(id) {
			return sh
		}
	}
	return nil
}

// shade adds by to the shadow count of every share whose data for a key differs
// from the merged element, and to the count of all sets.
func (s *State) shade(o *set, id string, by int) {
	w := o.winner(id)
	if w == nil {
		return
	}
	for _, sh := range o.shares {
		if sh != w && sh.elements.Differs(w.elements, id) {
			sh.shadowed += by
			sh.fragment.shadowed += by
			s.shadowed += by
			s.shaded[sh.fragment] = struct{}{}
		}
	}
}

func (o *set) declared() any { return o.decl() }

func (o *set) addition() kernel.Op { return kernel.AddSet{Table: o.table.id, Set: o.decl()} }

// removal flushes a map that leads to chains or objects. Older kernels release its
// targets only when the map is emptied first.
func (o *set) removal(before any) []kernel.Op {
	del := kernel.DeleteSet{Table: o.table.id, Name: o.id.Name}
	if packed.HasTargets(before.(*nftset.Set)) {
		return []kernel.Op{kernel.FlushSet{Table: o.table.id, Name: o.id.Name}, del}
	}
	return []kernel.Op{del}
}

func (o *set) remade(before any) bool {
	d := before.(*nftset.Set)
	return d != o.decl() && !d.Equal(o.decl())
}

func (o *set) accept(*decision) {
	o.watched, o.purged = o.pools != nil, o.affinity()
	for _, sh := range o.shares {
		sh.fresh, sh.origin = nil, -1
	}
}

// keepTouched is the greatest number of touched keys whose map is used again.
const keepTouched = 64

// clearChanges clears the touched keys. The maps of small changes are used again;
// those of large changes hold too much memory.
func (o *set) clearChanges() {
	o.written.before = nil
	if len(o.touched) > keepTouched {
		o.touched = nil
	}
	clear(o.touched)
}

// put changes a share's element to e, or removes it if has is false.
func (s *State) put(o *set, sh *setShare, id string, e nftset.Element, has bool) {
	s.work.Keys++
	had, same := sh.elements.Same(id, &e)
	expires := has && timed(sh.decl, &e)
	if had == has && (same || !has) && !expires {
		return
	}
	old, _ := sh.elements.Get(id)
	c := s.write(o, sh, id, old, had, e, has)
	c.renewed = expires && c.to == sh
	now := e // of its own, as the address of e is taken
	if o.merge != nil {
		o.remerge(id, &c, s.touchAll(o))
		s.undo = append(s.undo, func() {
			c := s.write(o, sh, id, now, has, old, had)
			o.remerge(id, &c, nil)
		})
	} else {
		prev, was := o.touched[id]
		touched := s.touch(o, id, &c)
		s.undo = append(s.undo, func() {
			s.work.Keys++
			s.write(o, sh, id, now, has, old, had)
			if touched {
				setKey(o.touched, id, prev, was)
			}
		})
	}
	s.restate(o, sh, id, expires)
	if has && !sh.fragment.unclaimed {
		s.claim(o, id)
	}
}

// expect makes room for the changes of n elements.
func (s *State) expect(o *set, n int) {
	s.undo = slices.Grow(s.undo, n)
	if len(o.touched) == 0 && n > keepTouched {
		o.touched = make(map[string]touch, n)
	}
}

// claim ends the unclaimed fragment's ownership of an element that a fragment has stated.
func (s *State) claim(o *set, id string) {
	if sh := o.unclaimed(); sh != nil && sh.claimable() && sh.elements.Has(id) {
		s.put(o, sh, id, nftset.Element{}, false)
	}
}

// touch journals a change of a merged element. In a set that the kernel does
// not have, a change of the winner counts even if the element is the same.
func (s *State) touch(o *set, id string, c *change) bool {
	same := c.had && c.has && packed.Same(o.decl(), &c.before, &c.after) && !c.renewed && c.from.expiry(id) == c.to.expiry(id)
	if o.kernel != nil && (same || !c.had && !c.has) {
		return false
	}
	s.mark(o)
	for m := range o.values {
		s.mark(m)
	}
	t, ok := o.touched[id]
	if !ok {
		if t.before, t.had = c.before, c.had; c.had && c.from != nil {
			t.flows, t.due = c.from.flows(), c.from.expiry(id)
		}
		if o.touched == nil {
			o.touched = map[string]touch{}
		}
	}
	t.origin = s.origin
	o.touched[id] = t
	return true
}

// write changes a share's element from old to e and everything that is counted
// from it. It returns the change of the merged element. It is its own inverse
// and writes no journal.
func (s *State) write(o *set, sh *setShare, id string, old nftset.Element, had bool, e nftset.Element, has bool) change {
	var c change
	several := len(o.shares) > 1
	if several && o.decl().Map {
		s.shade(o, id, -1)
		defer s.shade(o, id, +1)
	}
	if several {
		c.before, c.from, c.had = o.decided(id)
	} else {
		c.before, c.from, c.had = old, sh, had
	}
	if has {
		sh.elements.Put(id, &e)
	} else {
		sh.elements.Remove(id)
	}
	s.chargeElement(sh, id, old, had, e, has)
	s.resize(o)
	if several {
		c.after, c.to, c.has = o.decided(id)
		o.union += count(c.has) - count(c.had)
		s.updateConflict(o, id)
	} else {
		c.after, c.to, c.has = e, sh, has
	}
	if d := o.decl(); packed.HasTargets(d) && old.Data != e.Data {
		s.referTarget(o, d, old.Data, -1)
		s.referTarget(o, d, e.Data, +1)
	}
	o.pools.change(&c)
	return c
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// referTarget counts an element's reference to a chain or object.
func (s *State) referTarget(o *set, d *nftset.Set, data string, by int) {
	if id := leadsTo(d, data); id.Name != "" {
		target := o.table.part(id)
		s.refer(target, by)
		s.lead(o, data, target, by)
	}
}

// claimAll ends the unclaimed fragment's ownership of the elements of a share.
func (s *State) claimAll(o *set, sh *setShare) {
	for id := range sh.elements.All() {
		if o.unclaimed() == nil {
			break
		}
		s.claim(o, id)
	}
}

// link adds a share to the list or removes it, and updates everything that is
// counted from its elements.
func (o *set) link(s *State, linked share, in, journal bool) {
	sh := linked.(*setShare)
	var visit func(string, *change)
	others := len(o.shares) > count(!in)
	if journal && !sh.passive && (!in || o.kernel != nil || len(o.touched) > 0 || o.merge != nil && others) {
		visit = s.touchAll(o)
	}
	if others && sh.decl.Map {
		for id := range sh.elements.All() {
			s.shade(o, id, -1)
		}
	}
	o.place(s, sh, in)
	s.resize(o)
	if others {
		for id := range sh.elements.All() {
			if sh.decl.Map {
				s.shade(o, id, +1)
			}
			s.updateConflict(o, id)
		}
	}
	switch {
	case in && !others && visit == nil:
		o.merge = packed.NewUnion(o.decl(), o.shares)
	case in && !others:
		o.merge = packed.NewUnion[*setShare](sh.decl, nil)
	}
	if visit != nil || others || o.pools != nil || packed.HasTargets(sh.decl) {
		s.visit(o, sh, in, visit)
	}
	s.index(o, false)
}

// touchAll returns a function that touches keys, all of which are undone together.
func (s *State) touchAll(o *set) func(string, *change) {
	type undone struct {
		id   string
		prev touch
		was  bool
	}
	var touched []undone
	s.undo = append(s.undo, func() {
		for _, u := range touched {
			setKey(o.touched, u.id, u.prev, u.was)
		}
	})
	return func(id string, c *change) {
		prev, was := o.touched[id]
		if s.touch(o, id, c) {
			touched = append(touched, undone{id, prev, was})
		}
	}
}

// visit goes through the elements of a share that has just been linked or
// unlinked.
func (s *State) visit(o *set, sh *setShare, in bool, visit func(string, *change)) {
	by := sign(in)
	if in && len(o.shares) == 2 {
		o.union = o.shares[0].elements.Len() + o.shares[1].elements.Len() - sh.elements.Len()
	}
	// One for all, as it escapes.
	var c change
	behind := false
	for id, e := range sh.elements.All() {
		s.work.Keys++
		if packed.HasTargets(sh.decl) {
			s.referTarget(o, sh.decl, e.Data, by)
		}
		c, behind = change{}, false
		for _, other := range o.shares {
			if other == sh {
				continue
			}
			if x, ok := other.elements.Get(id); ok {
				c.before, c.from, c.had = x, other, true
				behind = other.fragment.compare(sh.fragment) < 0
				break
			}
		}
		if !c.had {
			o.union += by
		}
		switch {
		case behind && o.merge == nil:
			continue
		case behind:
			c.after, c.to, c.has = c.before, c.from, true
		default:
			c.after, c.to, c.has = e, sh, true
		}
		if !in {
			c = change{before: c.after, from: c.to, had: c.has, after: c.before, to: c.from, has: c.had}
		}
		o.pools.change(&c)
		switch {
		case o.merge != nil:
			o.remerge(id, &c, visit)
		case visit != nil:
			visit(id, &c)
		}
	}
}

// redeclareSet changes a share's declaration.
func (s *State) redeclareSet(o *set, sh *setShare, d *nftset.Set) {
	redeclare(s, o, sh, &sh.decl, d, func(old, d *nftset.Set) {
		s.resize(o)
		if old.Verdict != d.Verdict || old.Object != d.Object {
			for _, e := range sh.elements.All() {
				s.referTarget(o, old, e.Data, -1)
				s.referTarget(o, d, e.Data, +1)
			}
		}
		s.index(o, true)
		o.merge = packed.NewUnion(o.decl(), o.shares)
	})
}

// setConntrack changes whether a share's flows are watched.
func (s *State) setConntrack(o *set, sh *setShare, on bool) {
	if sh.conntrack == on {
		return
	}
	do(s, func(on bool) {
		sh.conntrack = on
		s.index(o, len(o.shares) > 1)
		s.unrecord(o)
	}, on, !on)
}
