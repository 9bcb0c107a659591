package merge

import (
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Set is the merge of one set or map: the shares in order of precedence. For
// each key the first share that has it decides. There is no merged copy.
type Set struct {
	shared[*SetShare]
	// Touched has the keys whose merged element has changed since the last
	// Accept. Where kernel is nil nothing was there before, and it only says
	// which update an element comes from that is not its share's first.
	Touched map[string]Touch
	// conflicts has the keys that several fragments state, so that it matters
	// which of them decides: see disagree.
	conflicts map[string]struct{}
	// union is the number of different keys of all shares, if there are several.
	union int
	// Merge is the union of the elements of a set with auto-merge, nil in other sets.
	Merge *packed.Union[*SetShare]
	// Pools is the index of UDP backends; nil unless a share wants it. watched
	// says that it was there at the last Accept.
	Pools   *Pools
	Watched bool
	// Written counts the rules that write to the map. purged says that it was an
	// affinity map at the last Accept.
	Written written
	Purged  bool
	// values counts the rules that write keys of this set as values of a map, by map.
	values map[*Set]int
	// routes has where a verdict map sends packets; nil if nowhere.
	routes *routes
	// Lookup is the time of a lookup as of the last evaluate; resized that it may have changed.
	Lookup  int
	resized bool
}

// Touch is the kernel's element of a key, and the last update that changed the
// merged element.
type Touch struct {
	Before nftset.Element
	Had    bool
	// Flows is true if the flows of the kernel's element are watched.
	Flows bool
	// Due is when the kernel's element expires, 0 if it does not.
	Due    time.Duration
	Origin int
}

// SetShare is one fragment's share of a set.
type SetShare struct {
	Fragment *Fragment
	Decl     *nftset.Set
	// Source is the declaration as its publisher wrote it; nil if that is not
	// known.
	Source *nft.Set
	// Dumped is true while decl comes from the kernel.
	Dumped              bool
	Conntrack, Affinity bool
	Elements            *packed.Elements
	// Due has the elements that expire.
	Due map[string]Due
	// bytes is the size of the elements for Usage, content what their memory depends on.
	bytes   int
	Content cost.Content
	// Origin is the update that brought the share, -1 after the next Accept. fresh
	// are the elements that it brought, in its order. It is nil after that, and if
	// a key was repeated.
	Origin int
	Fresh  []nftset.Element
	// Shadowed counts elements whose data another share's hides.
	Shadowed int

	// Waiting and passive are for the share of the unclaimed fragment. A waiting one holds
	// elements that recorded fragments may still own, and is dropped when all of
	// them have come back. A passive one holds elements that packets may have put
	// in: it is dropped without deleting them.
	Waiting, Passive bool

	// Won are the keys that were recorded as won before a restart: see
	// SetRecord.Wins.
	Won [][]byte
}

func (sh *SetShare) Packed() *packed.Elements { return sh.Elements }

// claimable reports whether a fragment that states an unclaimed element becomes its only owner.
func (sh *SetShare) claimable() bool { return sh.Fragment.Unclaimed && (!sh.Waiting || sh.Passive) }

// Flows reports whether the flows of the share's elements are watched, if those of any share
// of the set are. The elements of the unclaimed fragment may be those of any fragment.
func (sh *SetShare) Flows() bool { return sh.Conntrack || sh.Fragment.Unclaimed }

// change is a change of the merged element of a key.
type change struct {
	before, after nftset.Element
	// from is the share that decided on the key before, to the one that does now.
	from, to *SetShare
	had, has bool
	// renewed is true if the deciding fragment states an element with a timeout again.
	renewed bool
}

// Decl is the declaration. All shares agree on it, but one that comes from a
// dump knows less of it. While the elements of the last share leave the union, there is no share.
func (o *Set) Decl() *nftset.Set {
	if len(o.Shares) == 0 {
		return o.Merge.Decl
	}
	for _, sh := range o.Shares {
		if !sh.Dumped {
			return sh.Decl
		}
	}
	return o.Shares[0].Decl
}

// Effective returns the element of a key that the kernel is to have.
func (o *Set) Effective(id string) (nftset.Element, bool) {
	e, _, ok := o.Wanted(id)
	return e, ok
}

// Wanted is Effective with the share that decides on the element, nil for a merged range.
func (o *Set) Wanted(id string) (nftset.Element, *SetShare, bool) {
	e, sh, ok := o.Decided(id)
	if o.Merge == nil {
		return e, sh, ok
	}
	if merged, ok := o.Merge.Get(id); ok {
		return merged, nil, true
	}
	return e, sh, ok && o.Merge.Apart(id, &e)
}

// Decided returns the merged element of a key and the share that decides on it.
func (o *Set) Decided(id string) (nftset.Element, *SetShare, bool) {
	for _, sh := range o.Shares {
		if e, ok := sh.Elements.Get(id); ok {
			return e, sh, true
		}
	}
	return nftset.Element{}, nil, false
}

// Winner returns the share that decides on a key.
func (o *Set) Winner(id string) *SetShare {
	for _, sh := range o.Shares {
		if sh.Elements.Has(id) {
			return sh
		}
	}
	return nil
}

// shade adds by to the shadow count of every share whose data for a key differs
// from the merged element, and to the count of all sets.
func (s *State) shade(o *Set, id string, by int) {
	w := o.Winner(id)
	if w == nil {
		return
	}
	for _, sh := range o.Shares {
		if sh != w && sh.Elements.Differs(w.Elements, id) {
			sh.Shadowed += by
			sh.Fragment.Shadowed += by
			s.shadowed += by
			s.shaded[sh.Fragment] = struct{}{}
		}
	}
}

func (o *Set) Declared() any { return o.Decl() }

func (o *Set) Addition() kernel.Op { return kernel.AddSet{Table: o.Table.ID, Set: o.Decl()} }

// removal flushes a map that leads to chains or objects. Older kernels release its
// targets only when the map is emptied first.
func (o *Set) Removal(before any) []kernel.Op {
	del := kernel.DeleteSet{Table: o.Table.ID, Name: o.ID.Name}
	if packed.HasTargets(before.(*nftset.Set)) {
		return []kernel.Op{kernel.FlushSet{Table: o.Table.ID, Name: o.ID.Name}, del}
	}
	return []kernel.Op{del}
}

func (o *Set) Remade(before any) bool {
	d := before.(*nftset.Set)
	return d != o.Decl() && !d.Equal(o.Decl())
}

func (o *Set) Accept(*Decision) {
	o.Watched, o.Purged = o.Pools != nil, o.Affinity()
	for _, sh := range o.Shares {
		sh.Fresh, sh.Origin = nil, -1
	}
}

// keepTouched is the greatest number of touched keys whose map is used again.
const keepTouched = 64

// clearChanges clears the touched keys. The maps of small changes are used again;
// those of large changes hold too much memory.
func (o *Set) clearChanges() {
	o.Written.before = nil
	if len(o.Touched) > keepTouched {
		o.Touched = nil
	}
	clear(o.Touched)
}

// put changes a share's element to e, or removes it if has is false.
func (s *State) put(o *Set, sh *SetShare, id string, e nftset.Element, has bool) {
	s.Looked.Keys++
	had, same := sh.Elements.Same(id, &e)
	expires := has && Timed(sh.Decl, &e)
	if had == has && (same || !has) && !expires {
		return
	}
	old, _ := sh.Elements.Get(id)
	c := s.write(o, sh, id, old, had, e, has)
	c.renewed = expires && c.to == sh
	now := e // of its own, as the address of e is taken
	if o.Merge != nil {
		o.remerge(id, &c, s.touchAll(o))
		s.undo = append(s.undo, func() {
			c := s.write(o, sh, id, now, has, old, had)
			o.remerge(id, &c, nil)
		})
	} else {
		prev, was := o.Touched[id]
		touched := s.touch(o, id, &c)
		s.undo = append(s.undo, func() {
			s.Looked.Keys++
			s.write(o, sh, id, now, has, old, had)
			if touched {
				setKey(o.Touched, id, prev, was)
			}
		})
	}
	s.restate(o, sh, id, expires)
	if has && !sh.Fragment.Unclaimed {
		s.claim(o, id)
	}
}

// expect makes room for the changes of n elements.
func (s *State) expect(o *Set, n int) {
	s.undo = slices.Grow(s.undo, n)
	if len(o.Touched) == 0 && n > keepTouched {
		o.Touched = make(map[string]Touch, n)
	}
}

// claim ends the unclaimed fragment's ownership of an element that a fragment has stated.
func (s *State) claim(o *Set, id string) {
	if sh := o.unclaimed(); sh != nil && sh.claimable() && sh.Elements.Has(id) {
		s.put(o, sh, id, nftset.Element{}, false)
	}
}

// touch journals a change of a merged element. In a set that the kernel does
// not have, a change of the winner counts even if the element is the same.
func (s *State) touch(o *Set, id string, c *change) bool {
	same := c.had && c.has && packed.Same(o.Decl(), &c.before, &c.after) && !c.renewed && c.from.expiry(id) == c.to.expiry(id)
	if o.Kernel != nil && (same || !c.had && !c.has) {
		return false
	}
	s.Mark(o)
	for m := range o.values {
		s.Mark(m)
	}
	t, ok := o.Touched[id]
	if !ok {
		if t.Before, t.Had = c.before, c.had; c.had && c.from != nil {
			t.Flows, t.Due = c.from.Flows(), c.from.expiry(id)
		}
		if o.Touched == nil {
			o.Touched = map[string]Touch{}
		}
	}
	t.Origin = s.Origin
	o.Touched[id] = t
	return true
}

// write changes a share's element from old to e and everything that is counted
// from it. It returns the change of the merged element. It is its own inverse
// and writes no journal.
func (s *State) write(o *Set, sh *SetShare, id string, old nftset.Element, had bool, e nftset.Element, has bool) change {
	var c change
	several := len(o.Shares) > 1
	if several && o.Decl().Map {
		s.shade(o, id, -1)
		defer s.shade(o, id, +1)
	}
	if several {
		c.before, c.from, c.had = o.Decided(id)
	} else {
		c.before, c.from, c.had = old, sh, had
	}
	if has {
		sh.Elements.Put(id, &e)
	} else {
		sh.Elements.Remove(id)
	}
	s.chargeElement(sh, id, old, had, e, has)
	s.Paths.resize(o)
	if several {
		c.after, c.to, c.has = o.Decided(id)
		o.union += Count(c.has) - Count(c.had)
		s.updateConflict(o, id)
	} else {
		c.after, c.to, c.has = e, sh, has
	}
	if d := o.Decl(); packed.HasTargets(d) && old.Data != e.Data {
		s.referTarget(o, d, old.Data, -1)
		s.referTarget(o, d, e.Data, +1)
	}
	o.Pools.change(&c)
	return c
}

func Count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// referTarget counts an element's reference to a chain or object.
func (s *State) referTarget(o *Set, d *nftset.Set, data string, by int) {
	if id := LeadsTo(d, data); id.Name != "" {
		target := o.Table.Part(id)
		s.refer(target, by)
		s.Paths.lead(o, data, target, by)
	}
}

// claimAll ends the unclaimed fragment's ownership of the elements of a share.
func (s *State) claimAll(o *Set, sh *SetShare) {
	for id := range sh.Elements.All() {
		if o.unclaimed() == nil {
			break
		}
		s.claim(o, id)
	}
}

// link adds a share to the list or removes it, and updates everything that is
// counted from its elements.
func (o *Set) link(s *State, linked Share, in, journal bool) {
	sh := linked.(*SetShare)
	var visit func(string, *change)
	others := len(o.Shares) > Count(!in)
	if journal && !sh.Passive && (!in || o.Kernel != nil || len(o.Touched) > 0 || o.Merge != nil && others) {
		visit = s.touchAll(o)
	}
	if others && sh.Decl.Map {
		for id := range sh.Elements.All() {
			s.shade(o, id, -1)
		}
	}
	o.place(s, sh, in)
	s.Paths.resize(o)
	if others {
		for id := range sh.Elements.All() {
			if sh.Decl.Map {
				s.shade(o, id, +1)
			}
			s.updateConflict(o, id)
		}
	}
	switch {
	case in && !others && visit == nil:
		o.Merge = packed.NewUnion(o.Decl(), o.Shares)
	case in && !others:
		o.Merge = packed.NewUnion[*SetShare](sh.Decl, nil)
	}
	if visit != nil || others || o.Pools != nil || packed.HasTargets(sh.Decl) {
		s.visit(o, sh, in, visit)
	}
	s.index(o, false)
}

// touchAll returns a function that touches keys, all of which are undone together.
func (s *State) touchAll(o *Set) func(string, *change) {
	type undone struct {
		id   string
		prev Touch
		was  bool
	}
	var touched []undone
	s.undo = append(s.undo, func() {
		for _, u := range touched {
			setKey(o.Touched, u.id, u.prev, u.was)
		}
	})
	return func(id string, c *change) {
		prev, was := o.Touched[id]
		if s.touch(o, id, c) {
			touched = append(touched, undone{id, prev, was})
		}
	}
}

// visit goes through the elements of a share that has just been linked or
// unlinked.
func (s *State) visit(o *Set, sh *SetShare, in bool, visit func(string, *change)) {
	by := sign(in)
	if in && len(o.Shares) == 2 {
		o.union = o.Shares[0].Elements.Len() + o.Shares[1].Elements.Len() - sh.Elements.Len()
	}
	// One for all, as it escapes.
	var c change
	behind := false
	for id, e := range sh.Elements.All() {
		s.Looked.Keys++
		if packed.HasTargets(sh.Decl) {
			s.referTarget(o, sh.Decl, e.Data, by)
		}
		c, behind = change{}, false
		for _, other := range o.Shares {
			if other == sh {
				continue
			}
			if x, ok := other.Elements.Get(id); ok {
				c.before, c.from, c.had = x, other, true
				behind = other.Fragment.Compare(sh.Fragment) < 0
				break
			}
		}
		if !c.had {
			o.union += by
		}
		switch {
		case behind && o.Merge == nil:
			continue
		case behind:
			c.after, c.to, c.has = c.before, c.from, true
		default:
			c.after, c.to, c.has = e, sh, true
		}
		if !in {
			c = change{before: c.after, from: c.to, had: c.has, after: c.before, to: c.from, has: c.had}
		}
		o.Pools.change(&c)
		switch {
		case o.Merge != nil:
			o.remerge(id, &c, visit)
		case visit != nil:
			visit(id, &c)
		}
	}
}

// redeclareSet changes a share's declaration.
func (s *State) redeclareSet(o *Set, sh *SetShare, d *nftset.Set) {
	redeclare(s, o, sh, &sh.Decl, d, func(old, d *nftset.Set) {
		s.Paths.resize(o)
		if old.Verdict != d.Verdict || old.Object != d.Object {
			for _, e := range sh.Elements.All() {
				s.referTarget(o, old, e.Data, -1)
				s.referTarget(o, d, e.Data, +1)
			}
		}
		s.index(o, true)
		o.Merge = packed.NewUnion(o.Decl(), o.Shares)
	})
}

// setConntrack changes whether a share's flows are watched.
func (s *State) setConntrack(o *Set, sh *SetShare, on bool) {
	if sh.Conntrack == on {
		return
	}
	do(s, func(on bool) {
		sh.Conntrack = on
		s.index(o, len(o.Shares) > 1)
		s.unrecord(o)
	}, on, !on)
}

// Content returns the content of all shares.
func (o *Set) Content() *cost.Content {
	var c cost.Content
	for _, sh := range o.Shares {
		c.Join(&sh.Content)
	}
	return &c
}
