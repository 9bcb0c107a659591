package desired

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Adopt replaces the state by what the kernel holds and what was recorded of
// it. The fragments that it finds are adopted: each keeps what the kernel has
// of it until its snapshot replaces it. A snapshot that states the same costs
// no ops. Objects that are recorded but not in the kernel are ignored.
// A rule names its fragment. The elements of a set belong to the fragment that
// is recorded for it. If several are recorded, each holds the elements that it
// has won against others, and the rest has no owner until all of them have come
// back or been withdrawn. If none is recorded, the elements have no owner until
// DropUnclaimed. Elements that packets have put into dynamic sets always stay.
func (s *State) Adopt(dump []kernel.Table, record Record) {
	work, fixed, now := s.work, s.fixedFlags, s.expiries.now
	*s = *New()
	s.work, s.fixedFlags, s.expiries.now = work, fixed, now
	ad := &adoption{s: s, identities: map[Key]identity{}, shares: map[Place][]recorded{}, owners: map[Place]string{}}
	ad.index(dump, record)
	for i := range dump {
		ad.table(&dump[i])
	}
	for _, t := range s.dirty {
		for _, o := range t.parts {
			if o, ok := o.(*set); ok {
				o.watched, o.purged = o.pools != nil, o.affinity()
			}
		}
	}
	s.evaluate()
	s.reset()
	for i := range dump {
		for j := range dump[i].Sets {
			s.unmerged(dump[i].ID, &dump[i].Sets[j])
		}
	}
}

// unmerged marks what the kernel has otherwise than merged in a set with auto-merge, for the next Plan.
func (s *State) unmerged(id nft.TableID, d *kernel.Set) {
	if d.Decl == nil || !d.Decl.Merges() {
		return
	}
	o, ok := find[*set](s, id, setID(d.Decl.Name))
	if !ok {
		return
	}
	touched := s.diffElements(o, d)
	if len(touched) > 0 {
		s.markTable(o.table)
		s.mark(o)
		o.touched = touched
	}
}

// recorded is a recorded share. Only that of a chain or set has more than the fragment.
type recorded struct {
	key   Key
	chain ChainRecord
	set   SetRecord
}

// adoption is the index of a record while Adopt runs.
type adoption struct {
	s          *State
	identities map[Key]identity
	shares     map[Place][]recorded
	// owners has the recorded owners of parts that several publishers declare.
	owners map[Place]string
}

func (ad *adoption) index(dump []kernel.Table, record Record) {
	dumped := map[nft.TableID]bool{}
	for i := range dump {
		dumped[dump[i].ID] = true
	}
	for _, fr := range record.Fragments {
		key := Key{fr.Publisher, fr.Name}
		if _, twice := ad.identities[key]; twice {
			continue
		}
		ad.identities[key] = identity{priority: fr.Priority, lifetime: parseLifetime(fr.Lifetime), expires: fr.Expires.UTC()}
		for i := range fr.Tables {
			tr := &fr.Tables[i]
			family, err := nft.ParseFamily(tr.Family)
			id := nft.TableID{Family: family, Name: tr.Name}
			if err != nil || !dumped[id] {
				continue
			}
			h := ad.s.hold(ad.fragment(key), id)
			h.comment, h.dormant = tr.Comment, tr.dormancy()
			for _, o := range tr.Owned {
				ad.owners[Place{Table: id, Kind: string(o.Kind), Name: o.Name}] = fr.Publisher
			}
			for _, o := range tr.Objects {
				ad.add(id, objectID(o), recorded{key: key})
			}
			for _, c := range tr.Chains {
				ad.add(id, chainID(c.Name), recorded{key: key, chain: c})
			}
			for _, st := range tr.Sets {
				ad.add(id, setID(st.Name), recorded{key: key, set: st})
			}
		}
	}
}

func (ad *adoption) add(table nft.TableID, id objectID, r recorded) {
	at := Place{Table: table, Kind: string(id.Kind), Name: id.Name}
	ad.shares[at] = append(ad.shares[at], r)
}

// fragment returns the placeholder of a fragment.
func (ad *adoption) fragment(key Key) *fragment {
	f, ok := ad.s.fragments[key]
	if !ok {
		id := ad.identities[key]
		id.adopted = true
		f = newFragment(key, id)
		ad.s.writeFragment(key, f)
	}
	return f
}

// give gives a fragment a share of a part, unless it has one.
func (ad *adoption) give(o part, sh share) {
	n := o.base()
	h := ad.s.hold(sh.owner(), n.table.id)
	if h.shares[n.id] == nil {
		h.shares[n.id] = sh
		ad.s.link(o, sh, true, false)
	}
}

func (ad *adoption) table(d *kernel.Table) {
	t := ad.s.table(d.ID)
	t.kernel, t.asleep = true, d.Dormant
	parts := dumpedParts(d)
	for i := range parts {
		o := t.part(parts[i].id)
		o.base().kernel = parts[i].decl
		ad.s.mark(o)
	}
	for i := range parts {
		switch o := t.part(parts[i].id).(type) {
		case *object:
			ad.object(o, parts[i].decl.(objectDecl))
		case *set:
			ad.set(o, parts[i].set)
		case *chain:
			ad.chain(o, parts[i].chain)
		default:
			panic(fmt.Sprintf("desired: part %T is unknown", o))
		}
	}
	for _, o := range t.parts {
		if owner := ad.owners[o.at()]; declares(owner, o) {
			o.base().owner = owner
		}
	}
	if !t.exists() {
		ad.s.hold(ad.s.unclaimed, t.id)
	}
	if d.Dormant && !slices.ContainsFunc(t.holdings, func(h *holding) bool { return h.dormant != awake }) {
		// The record does not say which fragments declare it: their publishers will.
		for _, h := range t.holdings {
			h.dormant = dormant
		}
	}
}

// object gives a dumped object or flowtable to the fragments that are recorded
// for it, or to the unclaimed fragment.
func (ad *adoption) object(o *object, d objectDecl) {
	for _, rec := range ad.shares[o.at()] {
		ad.give(o, &objectShare{fragment: ad.fragment(rec.key), decl: d})
	}
	if !o.exists() {
		ad.give(o, &objectShare{fragment: ad.s.unclaimed, decl: d})
	}
}

// chain shares a dumped chain out to the fragments that its rules name and
// those that are recorded for it.
func (ad *adoption) chain(o *chain, d *kernel.Chain) {
	shares := map[*fragment]*chainShare{}
	share := func(f *fragment) *chainShare {
		sh, ok := shares[f]
		if !ok {
			sh = &chainShare{fragment: f, decl: d.Decl}
			shares[f] = sh
		}
		return sh
	}
	for _, rec := range ad.shares[o.at()] {
		sh := share(ad.fragment(rec.key))
		// Only what is there: a record can be ahead of the kernel.
		for _, id := range rec.chain.references() {
			target := o.table.part(id)
			ad.s.mark(target)
			if target.base().kernel != nil {
				sh.refs = append(sh.refs, id)
			}
		}
		sh.refs = sortIDs(sh.refs)
	}
	for i := range d.Rules {
		f := ad.s.unclaimed
		if key, ok := parseKey(d.Rules[i].Info.Owner); ok && d.Rules[i].Info.Ours {
			f = ad.fragment(key)
		}
		r := dumpedRule(o.table.id.Family, &d.Rules[i])
		r.adopted = true
		sh := share(f)
		sh.rules = append(sh.rules, r)
		o.rules = append(o.rules, r)
	}
	if len(shares) == 0 {
		share(ad.s.unclaimed)
	}
	for _, sh := range shares {
		sh.weigh()
		sh.traceAdopted()
		ad.give(o, sh)
	}
}

// dumpedRule makes the slot of a rule that is known from a dump.
func dumpedRule(family nft.Family, d *kernel.Rule) *slot {
	r := &compile.Rule{Family: family, Comment: d.Info.Comment, Fingerprint: d.Info.Fingerprint, Writes: d.Writes}
	return &slot{rule: r, owner: d.Info.Owner, handle: d.Handle}
}

// parseKey is the inverse of Key.String: a fragment's name has no slash.
func parseKey(owner string) (Key, bool) {
	i := strings.LastIndexByte(owner, '/')
	if i <= 0 || i == len(owner)-1 {
		return Key{}, false
	}
	return Key{Publisher: owner[:i], Name: owner[i+1:]}, true
}

// set gives a dumped set's elements to the fragment that is recorded for it, or
// to the unclaimed fragment.
func (ad *adoption) set(o *set, d *kernel.Set) {
	left := map[string]time.Duration{}
	give := func(sh *setShare) {
		sh.decl, sh.dumped, sh.origin = d.Decl, true, -1
		sh.weigh()
		ad.give(o, sh)
		for id := range sh.elements.All() {
			if at := left[id]; at != 0 && !sh.passive {
				ad.s.expireAt(o, sh, strings.Clone(id), due{at: ad.s.deadline(at)})
			}
		}
	}
	elements := packed.New(d.Decl, len(d.Elements))
	for i := range d.Elements {
		e := d.Elements[i]
		id := packed.ID(d.Decl, &e)
		if at := e.Expires(); at != 0 {
			left[id], e.State = at, nftset.NewState(0, e.Stateful())
		}
		elements.Put(id, &e)
	}
	recorded := ad.shares[o.at()]
	for _, rec := range recorded {
		sh := &setShare{fragment: ad.fragment(rec.key), conntrack: rec.set.Conntrack, affinity: rec.set.Affinity, elements: packed.New(d.Decl, 0)}
		switch {
		case packed.Dynamic(d.Decl):
		case len(recorded) == 1:
			sh.elements = elements
		default:
			sh.take(elements, rec.set.Wins)
		}
		give(sh)
	}
	if len(recorded) == 1 && !packed.Dynamic(d.Decl) || len(recorded) > 0 && elements.Len() == 0 {
		return
	}
	give(&setShare{fragment: ad.s.unclaimed, elements: elements, waiting: len(recorded) > 0, passive: packed.Dynamic(d.Decl)})
}

// setsShared returns the fragment's sets in which the unclaimed fragment has a share too.
func (f *fragment) setsShared() []*set {
	var shared []*set
	for _, h := range f.tables {
		for id := range h.shares {
			if o, ok := h.table.parts[id].(*set); ok && o.unclaimed() != nil {
				shared = append(shared, o)
			}
		}
	}
	return shared
}

// resolveUnclaimed drops the unclaimed fragment's share of sets that no longer need it: all
// fragments that it waited for have come back, or it is empty.
func (a *apply) resolveUnclaimed(sets []*set) {
	for _, o := range sets {
		sh := o.unclaimed()
		if sh == nil || o.awaited() {
			continue
		}
		if sh.waiting || len(o.shares) > 1 && (sh.passive || sh.elements.Len() == 0) {
			a.giveUp(a.s.unclaimed.tables[o.table.id], o.id)
			a.releaseUnclaimed(o.table)
		}
	}
}

// releaseUnclaimed ends the unclaimed fragment's holding in a table if it is empty.
func (a *apply) releaseUnclaimed(t *table) {
	if h, ok := a.s.unclaimed.tables[t.id]; ok && len(h.shares) == 0 {
		a.s.release(h)
	}
}

// HasUnclaimed reports whether DropUnclaimed would remove anything from a table: an object, or a
// part of one, that was in the kernel at Adopt and that no fragment is known for.
func (s *State) HasUnclaimed(of func(nft.TableID) bool) bool {
	for id, h := range s.unclaimed.tables {
		if !of(id) {
			continue
		}
		if len(h.shares) == 0 {
			return true
		}
		for id, sh := range h.shares {
			sh, ok := sh.(*setShare)
			if !ok || !sh.waiting && (!sh.passive || len(h.table.parts[id].fragments()) == 1) {
				return true
			}
		}
	}
	return false
}

// UnclaimedSets returns the sets and maps without a fragment that were in the kernel at
// Adopt, by table and name. Those that packets or elements may refer to are not
// among them: dynamic sets, and maps that lead to chains or objects.
func (s *State) UnclaimedSets() []Place {
	var sets []Place
	for _, h := range s.unclaimed.holdings() {
		for _, id := range sortedObjects(h.shares) {
			sh, ok := h.shares[id].(*setShare)
			if o := h.table.parts[id]; ok && len(o.fragments()) == 1 && o.base().refs == 0 && !sh.waiting && !sh.passive && !packed.HasTargets(sh.decl) {
				sets = append(sets, o.at())
			}
		}
	}
	return sets
}

// DropUnclaimedSet gives up one of UnclaimedSets. It counts as a change like an Apply.
//
// Possible errors: *[Rejection].
func (s *State) DropUnclaimedSet(at Place) error {
	return s.change(Key{}, func(a *apply) {
		a.f = s.unclaimed
		h := s.unclaimed.tables[at.Table]
		a.giveUp(h, setID(at.Name))
		a.releaseUnclaimed(h.table)
	}, nil)
}

// Returned reports whether all fragments of a publisher have sent their snapshots since Adopt, at
// least one, and all fragments in a table too.
func (s *State) Returned(publisher string, table nft.TableID) (returned bool) {
	for _, f := range s.fragments {
		of := f.key.Publisher == publisher
		if f.adopted && (of || f.tables[table] != nil) {
			return false
		}
		returned = returned || of
	}
	return returned
}

// DropUnclaimed gives up the content without a fragment in tables. It counts as a
// change like an Apply.
//
// Possible errors: *[Rejection], when a fragment refers to some of it.
func (s *State) DropUnclaimed(of func(nft.TableID) bool) error {
	return s.change(Key{}, func(a *apply) {
		a.f = s.unclaimed
		for _, h := range s.unclaimed.holdings() {
			if !of(h.table.id) {
				continue
			}
			for id, sh := range h.shares {
				if sh, ok := sh.(*setShare); !ok || !sh.waiting {
					a.giveUp(h, id)
				}
			}
			a.releaseUnclaimed(h.table)
		}
	}, nil)
}
