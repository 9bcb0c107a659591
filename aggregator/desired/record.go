package desired

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weft-proxy/weft/nft"
)

// Record says which fragments have a share in which objects, which a dump of
// the kernel does not tell. It is made for encoding/json. Its size is that of
// the declarations and of the elements that several fragments state.
// Write it before the commit that it describes. A fragment that is recorded but
// not yet in the kernel does no harm. A fragment that is in the kernel but not
// recorded loses its elements.
type Record struct {
	Fragments []FragmentRecord `json:"fragments,omitempty"`
}

// FragmentRecord is one fragment in a Record.
type FragmentRecord struct {
	Publisher string `json:"publisher"`
	Name      string `json:"name"`
	Priority  int32  `json:"priority,omitempty"`
	// Lifetime is the name of a Lifetime.
	Lifetime string `json:"lifetime,omitempty"`
	// Expires is when the fragment is to be withdrawn; zero means never.
	Expires time.Time     `json:"expires,omitzero"`
	Tables  []TableRecord `json:"tables,omitempty"`
}

// TableRecord has the shares of a fragment in one table.
type TableRecord struct {
	// Family is nft's keyword.
	Family  string `json:"family"`
	Name    string `json:"name"`
	Comment string `json:"comment,omitempty"`
	Dormant bool   `json:"dormant,omitempty"`
	// Alone says that Dormant has no effect while another publisher has a fragment in
	// the table that is not dormant.
	Alone  bool          `json:"alone,omitempty"`
	Chains []ChainRecord `json:"chains,omitempty"`
	Sets   []SetRecord   `json:"sets,omitempty"`
	// Objects are named objects and flowtables.
	Objects []ObjectRecord `json:"objects,omitempty"`
	// Owned are the chains, sets and objects that several fragments declare and that the
	// fragment's publisher owns, if the configuration has that publisher.
	Owned []ObjectRecord `json:"owned,omitempty"`
	// Apart is true for a table with many shares. They are in Shares.
	Apart bool `json:"apart,omitempty"`
	// Shares has each share that changed since Recorded, by kind and name, as a TableRecord
	// with nothing else. It is nil for a share that is gone. If Whole is true it has all shares.
	Shares map[string]*TableRecord `json:"-"`
	Whole  bool                    `json:"-"`
}

// Add adds a share.
func (r *TableRecord) Add(share *TableRecord) {
	r.Chains, r.Sets = append(r.Chains, share.Chains...), append(r.Sets, share.Sets...)
	r.Objects, r.Owned = append(r.Objects, share.Objects...), append(r.Owned, share.Owned...)
}

const (
	// sharesApart is how many shares of a table a Record has with the fragment.
	sharesApart = 512
	// maxUnrecorded bounds the parts that are remembered while no Record can be stored.
	maxUnrecorded = 1 << 16
)

// tablePart is a part of a table.
type tablePart struct {
	table nft.TableID
	id    objectID
}

// unrecord notes that a Record may have something else of a part, or of a holding if o is nil.
func (s *State) unrecord(o part) {
	s.recordedAt++
	if o != nil {
		n := o.base()
		s.unrecorded[tablePart{n.table.id, n.id}] = struct{}{}
	}
}

// Recorded notes that the last Record has been stored.
func (s *State) Recorded() {
	clear(s.unrecorded)
	for _, f := range s.fragments {
		for _, h := range f.tables {
			h.recorded = h.apart
		}
	}
}

// ObjectRecord names an object, or with the kinds "flowtable", "chain" and "set" a
// flowtable, a chain, and a set or map.
type ObjectRecord struct {
	Kind nft.ObjectKind `json:"kind"`
	Name string         `json:"name"`
}

// ChainRecord is a fragment's share of a chain, with the sets, chains and objects
// that its rules there refer to.
type ChainRecord struct {
	Name    string         `json:"name"`
	Sets    []string       `json:"sets,omitempty"`
	Chains  []string       `json:"chains,omitempty"`
	Objects []ObjectRecord `json:"objects,omitempty"`
}

// recordChain returns the record of a share of a chain.
func recordChain(name string, sh *chainShare) ChainRecord {
	r := ChainRecord{Name: name}
	for _, id := range sh.refs {
		switch id.Kind {
		case kindSet:
			r.Sets = append(r.Sets, id.Name)
		case kindChain:
			r.Chains = append(r.Chains, id.Name)
		default:
			r.Objects = append(r.Objects, ObjectRecord(id))
		}
	}
	return r
}

// references returns what the rules of a recorded share refer to.
func (r *ChainRecord) references() []objectID {
	ids := appendNames(appendNames(nil, kindSet, r.Sets), kindChain, r.Chains)
	for _, o := range r.Objects {
		ids = append(ids, objectID(o))
	}
	return ids
}

// SetRecord is a fragment's share of a set or map.
type SetRecord struct {
	Name      string `json:"name"`
	Conntrack bool   `json:"conntrack,omitempty"`
	Affinity  bool   `json:"affinity,omitempty"`
	// Wins are the packed keys of elements that other fragments state too and that
	// this one decides: in a map all, in a set those with different options; at
	// most 4,096 in either. Without them it would not be known after a restart
	// whose value the kernel has, and the first fragment to come back would
	// decide.
	Wins [][]byte `json:"wins,omitempty"`
}

// RecordVersion changes whenever Record may return something else, so that
// it need not be asked for and stored after every commit.
func (s *State) RecordVersion() uint64 { return s.recordedAt }

// Record returns the record of all fragments as they are now, applied or
// adopted, in a fixed order. Of a table with many shares it has those that changed since
// the last one that was Recorded.
func (s *State) Record() Record {
	var r Record
	all := len(s.unrecorded) > maxUnrecorded
	if all {
		clear(s.unrecorded)
	}
	for _, f := range s.sorted() {
		fr := FragmentRecord{Publisher: f.key.Publisher, Name: f.key.Name, Priority: f.priority, Lifetime: s.recordedLifetime(f).String(), Expires: f.expires}
		for _, h := range f.holdings() {
			tr := TableRecord{Family: h.table.id.Family.String(), Name: h.table.id.Name, Comment: h.comment, Dormant: h.dormant != awake, Alone: h.dormant == dormantAlone}
			s.recordShares(h, &tr, all)
			fr.Tables = append(fr.Tables, tr)
		}
		r.Fragments = append(r.Fragments, fr)
	}
	return r
}

// recordShares adds the shares of a holding to its record.
func (s *State) recordShares(h *holding, tr *TableRecord, all bool) {
	h.apart = h.apart || len(h.shares) > sharesApart
	h.recorded = h.recorded && !all
	if !h.apart {
		s.work.Objects += uint64(len(h.shares))
		for _, id := range sortedObjects(h.shares) {
			tr.Add(h.recordShare(id))
		}
		return
	}
	tr.Apart, tr.Whole, tr.Shares = true, !h.recorded, map[string]*TableRecord{}
	add := func(id objectID) {
		s.work.Objects++
		tr.Shares[id.String()] = h.recordShare(id)
	}
	if tr.Whole {
		for id := range h.shares {
			add(id)
		}
		return
	}
	for p := range s.unrecorded {
		if p.table == h.table.id {
			add(p.id)
		}
	}
}

// recordShare returns the record of a share, nil if there is none.
func (h *holding) recordShare(id objectID) *TableRecord {
	r := &TableRecord{}
	switch sh := h.shares[id].(type) {
	case nil:
		return nil
	case *objectShare:
		r.Objects = []ObjectRecord{ObjectRecord(id)}
	case *chainShare:
		r.Chains = []ChainRecord{recordChain(id.Name, sh)}
	case *setShare:
		r.Sets = []SetRecord{{Name: id.Name, Conntrack: sh.conntrack, Affinity: sh.affinity, Wins: h.table.set(id.Name).wins(sh)}}
	default:
		panic(fmt.Sprintf("desired: share %T is unknown", sh))
	}
	if o := h.table.parts[id]; o.base().owner == h.fragment.key.Publisher && len(o.fragments()) > 1 {
		r.Owned = []ObjectRecord{ObjectRecord(id)}
	}
	return r
}

// dormancy returns whether the fragment wants the table dormant.
func (r *TableRecord) dormancy() dormancy {
	switch {
	case !r.Dormant:
		return awake
	case r.Alone:
		return dormantAlone
	default:
		return dormant
	}
}

// sorted returns the fragments by publisher and name.
func (s *State) sorted() []*fragment {
	return slices.SortedFunc(maps.Values(s.fragments), func(a, b *fragment) int { return a.key.Compare(b.key) })
}

// holdings returns the fragment's holdings, by table.
func (f *fragment) holdings() []*holding {
	return slices.SortedFunc(maps.Values(f.tables), func(a, b *holding) int { return compareTables(a.table.id, b.table.id) })
}
