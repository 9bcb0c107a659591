package desired

import (
	"strings"

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
	work, fixed := s.work, s.fixedFlags
	*s = *New()
	s.work, s.fixedFlags = work, fixed
	ad := &adoption{s: s, chains: map[objectName][]recordedChain{}, sets: map[objectName][]recordedSet{}, identities: map[Key]identity{}, objects: map[Place][]Key{}}
	ad.index(dump, record)
	for i := range dump {
		ad.table(&dump[i])
	}
	for _, t := range s.dirty {
		for _, o := range t.sets {
			o.watched, o.purged = o.pools != nil, o.affinity()
		}
	}
	s.reset()
}

// objectName names a chain or set of any table.
type objectName struct {
	table nft.TableID
	name  string
}

type recordedChain struct {
	key Key
	ChainRecord
}

type recordedSet struct {
	key Key
	SetRecord
}

// adoption is the index of a record while Adopt runs.
type adoption struct {
	s          *State
	identities map[Key]identity
	chains     map[objectName][]recordedChain
	sets       map[objectName][]recordedSet
	objects    map[Place][]Key
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
			id, err := tr.tableID()
			if err != nil || !dumped[id] {
				continue
			}
			h := ad.hold(key, id)
			h.comment, h.dormant = tr.Comment, tr.Dormant
			for _, o := range tr.Objects {
				at := Place{Table: id, Kind: o.Kind, Name: o.Name}
				ad.objects[at] = append(ad.objects[at], key)
			}
			for _, c := range tr.Chains {
				o := objectName{id, c.Name}
				ad.chains[o] = append(ad.chains[o], recordedChain{key, c})
			}
			for _, st := range tr.Sets {
				o := objectName{id, st.Name}
				ad.sets[o] = append(ad.sets[o], recordedSet{key, st})
			}
		}
	}
}

// hold returns a placeholder's holding in a table.
func (ad *adoption) hold(key Key, id nft.TableID) *holding {
	f, ok := ad.s.fragments[key]
	if !ok {
		id := ad.identities[key]
		id.adopted = true
		f = newFragment(key, id)
		ad.s.writeFragment(key, f)
	}
	return ad.holdFor(f, id)
}

func (ad *adoption) holdFor(f *fragment, id nft.TableID) *holding {
	if h, ok := f.tables[id]; ok {
		return h
	}
	h := newHolding(f, ad.s.table(id))
	ad.s.writeHolding(h, true)
	return h
}

func (ad *adoption) table(d *kernel.Table) {
	t := ad.s.table(d.ID)
	t.kernel, t.asleep = true, d.Dormant
	for _, decl := range objectsOf(d) {
		ad.object(t, decl)
	}
	for i := range d.Sets {
		ad.set(t, &d.Sets[i])
	}
	for i := range d.Chains {
		if d.Chains[i].Decl != nil {
			t.chain(d.Chains[i].Decl.Name).kernel = d.Chains[i].Decl
		}
	}
	for i := range d.Chains {
		if d.Chains[i].Decl != nil {
			ad.chain(t, &d.Chains[i])
		}
	}
	if !t.exists() {
		ad.holdFor(ad.s.unclaimed, t.id)
	}
	if d.Dormant && !t.dormant() {
		// The record does not say which fragments declare it: their publishers will.
		for _, h := range t.holdings {
			h.dormant = true
		}
	}
}

// object gives a dumped object or flowtable to the fragments that are recorded
// for it, or to the unclaimed fragment.
func (ad *adoption) object(t *table, d objectDecl) {
	o := t.object(d.id())
	o.kernel = d
	ad.s.mark(o)
	share := func(h *holding) {
		if h.objects[o.id] == nil {
			sh := &objectShare{fragment: h.fragment, decl: d}
			h.setObject(o.id, sh)
			ad.s.linkObject(o, sh, true)
		}
	}
	for _, key := range ad.objects[o.at()] {
		share(ad.hold(key, t.id))
	}
	if !o.exists() {
		share(ad.holdFor(ad.s.unclaimed, t.id))
	}
}

// chain shares a dumped chain out to the fragments that its rules name and
// those that are recorded for it.
func (ad *adoption) chain(t *table, d *kernel.Chain) {
	o := t.chain(d.Decl.Name)
	ad.s.mark(o)
	shares := map[*fragment]*chainShare{}
	share := func(f *fragment) *chainShare {
		sh, ok := shares[f]
		if !ok {
			sh = &chainShare{fragment: f, decl: d.Decl}
			shares[f] = sh
		}
		return sh
	}
	for _, rec := range ad.chains[objectName{t.id, o.id.Name}] {
		sh := share(ad.hold(rec.key, t.id).fragment)
		// Only what is there: a record can be ahead of the kernel.
		for _, id := range rec.references() {
			target := t.part(id)
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
			f = ad.hold(key, t.id).fragment
		}
		r := dumpedRule(t.id.Family, &d.Rules[i])
		r.adopted = true
		sh := share(f)
		sh.rules = append(sh.rules, r)
		o.rules = append(o.rules, r)
	}
	if len(shares) == 0 {
		share(ad.s.unclaimed)
	}
	for f, sh := range shares {
		ad.holdFor(f, t.id).chains[o.id.Name] = sh
		ad.s.linkChain(o, sh, true)
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
func (ad *adoption) set(t *table, d *kernel.Set) {
	if d.Decl == nil {
		return
	}
	o := t.set(d.Decl.Name)
	o.kernel = d.Decl
	ad.s.mark(o)
	elements := newElements(d.Decl, len(d.Elements))
	for i := range d.Elements {
		elements.put(elementID(d.Decl, &d.Elements[i]), &d.Elements[i])
	}
	recorded := ad.sets[objectName{t.id, o.id.Name}]
	for _, rec := range recorded {
		sh := &setShare{decl: d.Decl, dumped: true, conntrack: rec.Conntrack, affinity: rec.Affinity, origin: -1, elements: newElements(d.Decl, 0)}
		switch {
		case dynamic(d.Decl):
		case len(recorded) == 1:
			sh.elements = elements
		default:
			sh.take(elements, rec.Wins)
		}
		ad.share(o, ad.hold(rec.key, t.id), sh)
	}
	if len(recorded) == 1 && !dynamic(d.Decl) || len(recorded) > 0 && elements.len() == 0 {
		return
	}
	sh := &setShare{decl: d.Decl, dumped: true, origin: -1, elements: elements}
	sh.waiting, sh.passive = len(recorded) > 0, dynamic(d.Decl)
	ad.share(o, ad.holdFor(ad.s.unclaimed, t.id), sh)
}

func (ad *adoption) share(o *set, h *holding, sh *setShare) {
	if _, twice := h.sets[o.id.Name]; twice {
		return
	}
	sh.fragment = h.fragment
	h.sets[o.id.Name] = sh
	sh.weigh()
	ad.s.link(o, sh, true, nil)
}

// replaceDumped replaces a declaration from a dump by the fragment's own, which
// is equal but knows more of how it was written.
func (s *State) replaceDumped(o *set, sh *setShare, d *nftset.Set) {
	assign(s, &sh.dumped, false)
	do(s, func(d *nftset.Set) { s.writeDecl(o, sh, d) }, d, sh.decl)
}

// setsShared returns the fragment's sets in which the unclaimed fragment has a share too.
func (f *fragment) setsShared() []*set {
	var shared []*set
	for _, h := range f.tables {
		for name := range h.sets {
			if o := h.table.sets[name]; o.unclaimed() != nil {
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
		if sh.waiting || len(o.shares) > 1 && (sh.passive || sh.elements.len() == 0) {
			a.giveUp(a.s.unclaimed.tables[o.table.id], o.id)
			a.releaseUnclaimed(o.table)
		}
	}
}

// releaseUnclaimed ends the unclaimed fragment's holding in a table if it is empty.
func (a *apply) releaseUnclaimed(t *table) {
	if h, ok := a.s.unclaimed.tables[t.id]; ok && len(h.chains) == 0 && len(h.sets) == 0 && len(h.objects) == 0 {
		a.s.release(h)
	}
}
