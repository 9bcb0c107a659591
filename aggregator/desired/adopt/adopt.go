package adopt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// Dump replaces the state by a dump and a record. An adopted fragment keeps its content until its
// snapshot; an equal snapshot costs no ops. Recorded parts missing in the kernel are ignored.
//
// A rule names its fragment. Elements belong to the recorded fragment of the set. Of several, each
// holds its won elements, and the rest has no owner until all have come back or been withdrawn.
// Without a record they have no owner until DropUnclaimed. Elements of packets in dynamic sets
// always stay.
func Dump(s *merge.State, dump []kernel.Table, record desired.Record) {
	work, fixed, now := s.Work(), s.FixedFlags, s.Expiries.Now
	*s = *merge.New()
	s.Looked, s.FixedFlags, s.Expiries.Now = work, fixed, now
	ad := &adoption{s: s, identities: map[desired.Key]merge.Identity{}, shares: map[desired.Place][]recorded{}, owners: map[desired.Place]string{}}
	ad.index(dump, record)
	for i := range dump {
		ad.table(&dump[i])
	}
	for _, t := range s.Dirty {
		for _, o := range t.Parts {
			if o, ok := o.(*merge.Set); ok {
				o.Watched, o.Purged = o.Pools != nil, o.Affinity()
			}
		}
	}
	s.Paths.Evaluate()
	s.Reset()
	for i := range dump {
		for j := range dump[i].Sets {
			unmerged(s, dump[i].ID, &dump[i].Sets[j])
		}
	}
}

// unmerged marks differences of the kernel in a set with auto-merge for the next plan.
func unmerged(s *merge.State, id nft.TableID, d *kernel.Set) {
	if d.Decl == nil || !d.Decl.Merges() {
		return
	}
	o, ok := merge.Find[*merge.Set](s, id, merge.SetID(d.Decl.Name))
	if !ok {
		return
	}
	touched := Differences(s, o, d)
	if len(touched) > 0 {
		s.MarkTable(o.Table)
		s.Mark(o)
		o.Touched = touched
	}
}

type recorded struct {
	key   desired.Key
	chain desired.ChainRecord
	set   desired.SetRecord
}

// adoption is the state with an index of the record.
type adoption struct {
	s          *merge.State
	identities map[desired.Key]merge.Identity
	shares     map[desired.Place][]recorded
	// owners has the recorded owners of parts with several publishers.
	owners map[desired.Place]string
}

func (ad *adoption) index(dump []kernel.Table, record desired.Record) {
	dumped := map[nft.TableID]bool{}
	for i := range dump {
		dumped[dump[i].ID] = true
	}
	for _, fr := range record.Fragments {
		key := desired.Key{Publisher: fr.Publisher, Name: fr.Name}
		if _, twice := ad.identities[key]; twice {
			continue
		}
		ad.identities[key] = merge.Identity{Priority: fr.Priority, Lifetime: desired.ParseLifetime(fr.Lifetime), Expires: fr.Expires.UTC()}
		for i := range fr.Tables {
			tr := &fr.Tables[i]
			family, err := nft.ParseFamily(tr.Family)
			id := nft.TableID{Family: family, Name: tr.Name}
			if err != nil || !dumped[id] {
				continue
			}
			h := ad.fragment(key).Hold(ad.s, id)
			h.Comment, h.Dormant = tr.Comment, dormancy(tr)
			for _, o := range tr.Owned {
				ad.owners[desired.Place{Table: id, Kind: string(o.Kind), Name: o.Name}] = fr.Publisher
			}
			for _, o := range tr.Objects {
				ad.add(id, merge.ObjectID(o), recorded{key: key})
			}
			for _, c := range tr.Chains {
				ad.add(id, merge.ChainID(c.Name), recorded{key: key, chain: c})
			}
			for _, st := range tr.Sets {
				ad.add(id, merge.SetID(st.Name), recorded{key: key, set: st})
			}
		}
	}
}

func (ad *adoption) add(table nft.TableID, id merge.ObjectID, r recorded) {
	at := desired.Place{Table: table, Kind: string(id.Kind), Name: id.Name}
	ad.shares[at] = append(ad.shares[at], r)
}

func (ad *adoption) fragment(key desired.Key) *merge.Fragment {
	f, ok := ad.s.Fragments[key]
	if !ok {
		id := ad.identities[key]
		id.Adopted = true
		f = merge.NewFragment(key, id)
		ad.s.WriteFragment(key, f)
	}
	return f
}

func (ad *adoption) give(o merge.Part, sh merge.Share) {
	n := o.Base()
	h := sh.Owner().Hold(ad.s, n.Table.ID)
	if h.Shares[n.ID] == nil {
		h.Shares[n.ID] = sh
		ad.s.Link(o, sh, true, false)
	}
}

func (ad *adoption) table(d *kernel.Table) {
	t := ad.s.Table(d.ID)
	t.Kernel, t.Asleep = true, d.Dormant
	parts := DumpedParts(d)
	for i := range parts {
		o := t.Part(parts[i].ID)
		o.Base().Kernel = parts[i].Decl
		ad.s.Mark(o)
	}
	for i := range parts {
		switch o := t.Part(parts[i].ID).(type) {
		case *merge.Object:
			ad.object(o, parts[i].Decl.(merge.ObjectDecl))
		case *merge.Set:
			ad.set(o, parts[i].Set)
		case *merge.Chain:
			ad.chain(o, parts[i].Chain)
		default:
			panic(fmt.Sprintf("desired: part %T is unknown", o))
		}
	}
	for _, o := range t.Parts {
		if owner := ad.owners[o.At()]; merge.Declares(owner, o) {
			o.Base().Owner = owner
		}
	}
	if !t.Exists() {
		ad.s.Unclaimed.Hold(ad.s, t.ID)
	}
	if d.Dormant && !slices.ContainsFunc(t.Holdings, func(h *merge.Holding) bool { return h.Dormant != merge.Awake }) {
		// No record says which fragments want the table dormant: their snapshots will.
		for _, h := range t.Holdings {
			h.Dormant = merge.Dormant
		}
	}
}

func (ad *adoption) object(o *merge.Object, d merge.ObjectDecl) {
	for _, rec := range ad.shares[o.At()] {
		ad.give(o, &merge.ObjectShare{Fragment: ad.fragment(rec.key), Decl: d})
	}
	if !o.Exists() {
		ad.give(o, &merge.ObjectShare{Fragment: ad.s.Unclaimed, Decl: d})
	}
}

func (ad *adoption) chain(o *merge.Chain, d *kernel.Chain) {
	shares := map[*merge.Fragment]*merge.ChainShare{}
	share := func(f *merge.Fragment) *merge.ChainShare {
		sh, ok := shares[f]
		if !ok {
			sh = &merge.ChainShare{Fragment: f, Decl: d.Decl}
			shares[f] = sh
		}
		return sh
	}
	for _, rec := range ad.shares[o.At()] {
		sh := share(ad.fragment(rec.key))
		// A record is written before its commit, and can be ahead of the kernel.
		for _, id := range references(&rec.chain) {
			target := o.Table.Part(id)
			ad.s.Mark(target)
			if target.Base().Kernel != nil {
				sh.Refs = append(sh.Refs, id)
			}
		}
		sh.Refs = merge.SortIDs(sh.Refs)
	}
	for i := range d.Rules {
		f := ad.s.Unclaimed
		if key, ok := desired.ParseKey(d.Rules[i].Info.Owner); ok && d.Rules[i].Info.Ours {
			f = ad.fragment(key)
		}
		r := DumpedRule(o.Table.ID.Family, &d.Rules[i])
		r.Adopted = true
		sh := share(f)
		sh.Rules = append(sh.Rules, r)
		o.Rules = append(o.Rules, r)
	}
	if len(shares) == 0 {
		share(ad.s.Unclaimed)
	}
	for _, sh := range shares {
		sh.Weigh()
		sh.TraceAdopted()
		ad.give(o, sh)
	}
}

func (ad *adoption) set(o *merge.Set, d *kernel.Set) {
	left := map[string]time.Duration{}
	give := func(sh *merge.SetShare) {
		sh.Decl, sh.Dumped, sh.Origin = d.Decl, true, -1
		sh.Weigh()
		ad.give(o, sh)
		for id := range sh.Elements.All() {
			if at := left[id]; at != 0 && !sh.Passive {
				ad.s.Expiries.ExpireAt(o, sh, strings.Clone(id), merge.Due{At: ad.s.Expiries.Deadline(at)})
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
	recorded := ad.shares[o.At()]
	for _, rec := range recorded {
		sh := &merge.SetShare{Fragment: ad.fragment(rec.key), Conntrack: rec.set.Conntrack, Affinity: rec.set.Affinity, Elements: packed.New(d.Decl, 0)}
		switch {
		case packed.Dynamic(d.Decl):
		case len(recorded) == 1:
			sh.Elements = elements
		default:
			take(sh, elements, rec.set.Wins)
		}
		give(sh)
	}
	if len(recorded) == 1 && !packed.Dynamic(d.Decl) || len(recorded) > 0 && elements.Len() == 0 {
		return
	}
	give(&merge.SetShare{Fragment: ad.s.Unclaimed, Elements: elements, Waiting: len(recorded) > 0, Passive: packed.Dynamic(d.Decl)})
}

// take moves a share's won elements from a dumped set.
func take(sh *merge.SetShare, dumped *packed.Elements, wins [][]byte) {
	for _, id := range wins {
		if e, ok := dumped.Get(string(id)); ok {
			sh.Elements.Put(string(id), &e)
			sh.Won = append(sh.Won, id)
			dumped.Remove(string(id))
		}
	}
}

func references(r *desired.ChainRecord) []merge.ObjectID {
	ids := merge.AppendNames(merge.AppendNames(nil, merge.KindSet, r.Sets), merge.KindChain, r.Chains)
	for _, o := range r.Objects {
		ids = append(ids, merge.ObjectID(o))
	}
	return ids
}

func dormancy(r *desired.TableRecord) merge.Dormancy {
	switch {
	case !r.Dormant:
		return merge.Awake
	case r.Alone:
		return merge.DormantAlone
	default:
		return merge.Dormant
	}
}
