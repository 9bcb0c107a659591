package views

import (
	"fmt"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
)

// recordedLifetime returns the earlier lifetime of a committed fragment that becomes
// LifetimeSession: after a crash before the commit, the next process would withdraw it.
func recordedLifetime(s *merge.State, f *merge.Fragment) desired.Lifetime {
	if before := s.Lifetimes[f.Key]; before != desired.LifetimeUnspecified && f.Lifetime == desired.LifetimeSession {
		return before
	}
	return f.Lifetime
}

func recordChain(name string, sh *merge.ChainShare) desired.ChainRecord {
	r := desired.ChainRecord{Name: name}
	for _, id := range sh.Refs {
		switch id.Kind {
		case merge.KindSet:
			r.Sets = append(r.Sets, id.Name)
		case merge.KindChain:
			r.Chains = append(r.Chains, id.Name)
		default:
			r.Objects = append(r.Objects, desired.ObjectRecord(id))
		}
	}
	return r
}

// Record returns the record of all fragments, in a fixed order. Of a table with many shares it has
// only the changes since merge.State.Recorded.
func Record(s *merge.State) desired.Record {
	var r desired.Record
	all := len(s.Unrecorded) > merge.MaxUnrecorded
	if all {
		clear(s.Unrecorded)
	}
	for _, f := range s.SortedFragments() {
		fr := desired.FragmentRecord{Publisher: f.Key.Publisher, Name: f.Key.Name, Priority: f.Priority, Lifetime: recordedLifetime(s, f).String(), Expires: f.Expires}
		for _, h := range f.SortedHoldings() {
			tr := desired.TableRecord{Family: h.Table.ID.Family.String(), Name: h.Table.ID.Name, Comment: h.Comment, Dormant: h.Dormant != merge.Awake, Alone: h.Dormant == merge.DormantAlone}
			recordShares(s, h, &tr, all)
			fr.Tables = append(fr.Tables, tr)
		}
		r.Fragments = append(r.Fragments, fr)
	}
	return r
}

func recordShares(s *merge.State, h *merge.Holding, tr *desired.TableRecord, all bool) {
	h.Apart = h.Apart || len(h.Shares) > merge.SharesApart
	h.Recorded = h.Recorded && !all
	if !h.Apart {
		s.Looked.Objects += uint64(len(h.Shares))
		for _, id := range merge.SortedObjects(h.Shares) {
			tr.Add(RecordShare(h, id))
		}
		return
	}
	tr.Apart, tr.Whole, tr.Shares = true, !h.Recorded, map[string]*desired.TableRecord{}
	add := func(id merge.ObjectID) {
		s.Looked.Objects++
		tr.Shares[id.String()] = RecordShare(h, id)
	}
	if tr.Whole {
		for id := range h.Shares {
			add(id)
		}
		return
	}
	for p := range s.Unrecorded {
		if p.Table == h.Table.ID {
			add(p.ID)
		}
	}
}

// RecordShare returns the record of a share, or nil.
func RecordShare(h *merge.Holding, id merge.ObjectID) *desired.TableRecord {
	r := &desired.TableRecord{}
	switch sh := h.Shares[id].(type) {
	case nil:
		return nil
	case *merge.ObjectShare:
		r.Objects = []desired.ObjectRecord{desired.ObjectRecord(id)}
	case *merge.ChainShare:
		r.Chains = []desired.ChainRecord{recordChain(id.Name, sh)}
	case *merge.SetShare:
		r.Sets = []desired.SetRecord{{Name: id.Name, Conntrack: sh.Conntrack, Affinity: sh.Affinity, Wins: h.Table.Set(id.Name).Wins(sh)}}
	default:
		panic(fmt.Sprintf("desired: share %T is unknown", sh))
	}
	if o := h.Table.Parts[id]; o.Base().Owner == h.Fragment.Key.Publisher && len(o.Fragments()) > 1 {
		r.Owned = []desired.ObjectRecord{desired.ObjectRecord(id)}
	}
	return r
}
