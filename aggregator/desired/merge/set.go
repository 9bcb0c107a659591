package merge

import (
	"time"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/cost"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Set is the merge of a set or map, without a merged copy. For each key the first share decides.
type Set struct {
	shared[*SetShare]
	// Touched has the keys with another merged element since Accept. If the kernel lacks the set,
	// it has only elements that changed after their share came, for their origin.
	Touched   map[string]Touch
	conflicts map[string]struct{}
	// conflicts has the keys that disagree reports. union is the number of different keys of
	// several shares.
	union int
	// Merge is the union of a set with auto-merge, or nil.
	Merge *packed.Union[*SetShare]
	// Pools is nil unless a share watches flows. Watched is its presence at the last Accept.
	Pools   *Pools
	Watched bool
	// Written counts rules that write to the map. Purged is Affinity at the last Accept.
	Written written
	Purged  bool
	// values counts by map the rules that write keys of this set.
	values map[*Set]int
	routes *routes
	// Lookup is LookupTime at the last Evaluate; resized says that it may have changed.
	Lookup  int
	resized bool
}

// Touch has the kernel's element of a key: Before if Had is true, Flows if its flows were watched,
// Due as in SetShare. Origin is the last update of the merged element.
type Touch struct {
	Before nftset.Element
	Had    bool
	Flows  bool
	Due    time.Duration
	Origin int
}

type SetShare struct {
	Fragment *Fragment
	Decl     *nftset.Set
	Source   *nft.Set
	// Dumped is true while Decl comes from the kernel.
	Dumped              bool
	Conntrack, Affinity bool
	Elements            *packed.Elements
	Due                 map[string]Due
	// bytes is for Usage. Content determines the memory.
	bytes   int
	Content cost.Content
	// Origin is the update that brought the share, -1 after Accept. Fresh are the update's elements
	// until Accept, in its order, or nil with repeated keys.
	Origin   int
	Fresh    []nftset.Element
	Shadowed int

	// A Waiting share of the unclaimed fragment holds elements that recorded fragments may still
	// own, until all have come back. A Passive one holds elements of packets: it is dropped without
	// deleting them.
	Waiting, Passive bool

	// Won are the recorded SetRecord.Wins from before a restart.
	Won [][]byte
}

func (sh *SetShare) Packed() *packed.Elements { return sh.Elements }

// claimable reports whether a fragment that states an unclaimed element becomes its only owner.
func (sh *SetShare) claimable() bool { return sh.Fragment.Unclaimed && (!sh.Waiting || sh.Passive) }

// Flows reports whether elements are in Pools. Unclaimed ones may belong to any fragment.
func (sh *SetShare) Flows() bool { return sh.Conntrack || sh.Fragment.Unclaimed }

type elementChange struct {
	before, after nftset.Element
	// from decided before, to decides now.
	from, to *SetShare
	had, has bool
	// renewed is true for a new statement with a timeout.
	renewed bool
}

// Decl returns a publisher's declaration if there is one: a dumped one has less. While the last
// share's elements leave the union, the set has no share.
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

// Wanted returns the element that the kernel should have, and the deciding share, nil for a merged
// range.
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

// Decided returns a stated element and its deciding share.
func (o *Set) Decided(id string) (nftset.Element, *SetShare, bool) {
	for _, sh := range o.Shares {
		if e, ok := sh.Elements.Get(id); ok {
			return e, sh, true
		}
	}
	return nftset.Element{}, nil, false
}

func (o *Set) Winner(id string) *SetShare {
	for _, sh := range o.Shares {
		if sh.Elements.Has(id) {
			return sh
		}
	}
	return nil
}

// shade adds by to the shadow count of each share with other data than the winner.
func (o *Set) shade(l *ledger, id string, by int) {
	w := o.Winner(id)
	if w == nil {
		return
	}
	for _, sh := range o.Shares {
		if sh != w && sh.Elements.Differs(w.Elements, id) {
			l.shade(sh, by)
		}
	}
}

func (o *Set) Declared() any { return o.Decl() }

func (o *Set) Addition() kernel.Op { return kernel.AddSet{Table: o.Table.ID, Set: o.Decl()} }

// Removal flushes a map with targets: older kernels release them only then.
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

// keepTouched bounds the length of a Touched to use again: a longer one holds too much memory.
const keepTouched = 64

func (o *Set) clearChanges() {
	o.Written.before = nil
	if len(o.Touched) > keepTouched {
		o.Touched = nil
	}
	clear(o.Touched)
}

// put changes a share's element to e, or removes it if has is false.
func (sh *SetShare) put(s *State, o *Set, id string, e nftset.Element, has bool) {
	s.Looked.Keys++
	had, same := sh.Elements.Same(id, &e)
	expires := has && Timed(sh.Decl, &e)
	if had == has && (same || !has) && !expires {
		return
	}
	old, _ := sh.Elements.Get(id)
	c := sh.write(&s.derived, o, id, old, had, e, has)
	c.renewed = expires && c.to == sh
	now := e // a copy, as its address escapes
	if o.Merge != nil {
		o.remerge(id, &c, o.touchAll(s))
		s.onUndo(func() {
			c := sh.write(&s.derived, o, id, now, has, old, had)
			o.remerge(id, &c, nil)
		})
	} else {
		prev, was := o.Touched[id]
		touched := o.touch(s, id, &c)
		s.onUndo(func() {
			s.Looked.Keys++
			sh.write(&s.derived, o, id, now, has, old, had)
			if touched {
				setKey(o.Touched, id, prev, was)
			}
		})
	}
	sh.restate(s, o, id, expires)
	if has && !sh.Fragment.Unclaimed {
		o.claim(s, id)
	}
}

func (o *Set) claim(s *State, id string) {
	if sh := o.unclaimed(); sh != nil && sh.claimable() && sh.Elements.Has(id) {
		sh.put(s, o, id, nftset.Element{}, false)
	}
}

// touch notes a change of a merged element in Touched. In a set that the kernel has, an equal
// element is not a change.
func (o *Set) touch(s *State, id string, c *elementChange) bool {
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

// write changes a share's element from old to e with all counts, and returns the merged change. It
// is its own inverse, without journal.
func (sh *SetShare) write(d *derived, o *Set, id string, old nftset.Element, had bool, e nftset.Element, has bool) elementChange {
	var c elementChange
	several := len(o.Shares) > 1
	if several && o.Decl().Map {
		o.shade(&d.ledger, id, -1)
		defer o.shade(&d.ledger, id, +1)
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
	sh.charge(&d.ledger, id, old, had, e, has)
	d.Paths.resize(o)
	if several {
		c.after, c.to, c.has = o.Decided(id)
		o.union += Count(c.has) - Count(c.had)
		o.updateConflict(&d.observed, id)
	} else {
		c.after, c.to, c.has = e, sh, has
	}
	if decl := o.Decl(); packed.HasTargets(decl) && old.Data != e.Data {
		o.referTarget(d, decl, old.Data, -1)
		o.referTarget(d, decl, e.Data, +1)
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

func (o *Set) referTarget(d *derived, decl *nftset.Set, data string, by int) {
	if id := LeadsTo(decl, data); id.Name != "" {
		target := o.Table.Part(id)
		d.refer(target, by)
		d.Paths.lead(o, data, target, by)
	}
}

func (sh *SetShare) claimAll(s *State, o *Set) {
	for id := range sh.Elements.All() {
		if o.unclaimed() == nil {
			break
		}
		o.claim(s, id)
	}
}

func (o *Set) link(s *State, linked Share, in, journal bool) {
	sh := linked.(*SetShare)
	var visit func(string, *elementChange)
	others := len(o.Shares) > Count(!in)
	if journal && !sh.Passive && (!in || o.Kernel != nil || len(o.Touched) > 0 || o.Merge != nil && others) {
		visit = o.touchAll(s)
	}
	if others && sh.Decl.Map {
		for id := range sh.Elements.All() {
			o.shade(&s.ledger, id, -1)
		}
	}
	o.place(&s.ledger, sh, in)
	s.Paths.resize(o)
	if others {
		for id := range sh.Elements.All() {
			if sh.Decl.Map {
				o.shade(&s.ledger, id, +1)
			}
			o.updateConflict(&s.observed, id)
		}
	}
	switch {
	case in && !others && visit == nil:
		o.Merge = packed.NewUnion(o.Decl(), o.Shares)
	case in && !others:
		o.Merge = packed.NewUnion[*SetShare](sh.Decl, nil)
	}
	if visit != nil || others || o.Pools != nil || packed.HasTargets(sh.Decl) {
		sh.visit(&s.derived, o, in, visit)
	}
	o.index(&s.derived, false)
}

// touchAll returns touch with one journal entry for all keys.
func (o *Set) touchAll(s *State) func(string, *elementChange) {
	type undone struct {
		id   string
		prev Touch
		was  bool
	}
	var touched []undone
	s.onUndo(func() {
		for _, u := range touched {
			setKey(o.Touched, u.id, u.prev, u.was)
		}
	})
	return func(id string, c *elementChange) {
		prev, was := o.Touched[id]
		if o.touch(s, id, c) {
			touched = append(touched, undone{id, prev, was})
		}
	}
}

// visit counts the elements of a newly linked or unlinked share.
func (sh *SetShare) visit(d *derived, o *Set, in bool, visit func(string, *elementChange)) {
	by := sign(in)
	if in && len(o.Shares) == 2 {
		o.union = o.Shares[0].Elements.Len() + o.Shares[1].Elements.Len() - sh.Elements.Len()
	}
	// One variable for all elements: its address escapes.
	var c elementChange
	behind := false
	for id, e := range sh.Elements.All() {
		d.Looked.Keys++
		if packed.HasTargets(sh.Decl) {
			o.referTarget(d, sh.Decl, e.Data, by)
		}
		c, behind = elementChange{}, false
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
			c = elementChange{before: c.after, from: c.to, had: c.has, after: c.before, to: c.from, has: c.had}
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

func (sh *SetShare) redeclare(s *State, o *Set, d *nftset.Set) {
	redeclare(s, o, sh, &sh.Decl, d, func(old, d *nftset.Set) {
		s.Paths.resize(o)
		if old.Verdict != d.Verdict || old.Object != d.Object {
			for _, e := range sh.Elements.All() {
				o.referTarget(&s.derived, old, e.Data, -1)
				o.referTarget(&s.derived, d, e.Data, +1)
			}
		}
		o.index(&s.derived, true)
		o.Merge = packed.NewUnion(o.Decl(), o.Shares)
	})
}

func (sh *SetShare) setConntrack(s *State, o *Set, on bool) {
	if sh.Conntrack == on {
		return
	}
	do(&s.journal, func(on bool) {
		sh.Conntrack = on
		o.index(&s.derived, len(o.Shares) > 1)
		s.unrecord(o)
	}, on, !on)
}

func (o *Set) Content() *cost.Content {
	var c cost.Content
	for _, sh := range o.Shares {
		c.Join(&sh.Content)
	}
	return &c
}
