package merge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
)

// Identity has the attributes of a fragment. A snapshot replaces all.
type Identity struct {
	Priority int32
	Lifetime desired.Lifetime
	Expires  time.Time
	// Session and Serial are 0 without a session.
	Session, Serial uint64
	// Adopted is true from adopt.Dump to the snapshot.
	Adopted bool
}

// setIdentity replaces the identity. Before another priority, take the fragment's shares out of
// parts with several shares: their lists are in order of priority.
func (f *Fragment) setIdentity(s *State, id Identity) {
	if id.Lifetime != f.Lifetime {
		s.noteLifetime(f.Key, s.Fragments[f.Key])
	}
	old := f.Identity
	recorded := old.Priority != id.Priority || old.Lifetime != id.Lifetime || old.Expires != id.Expires || old.Adopted != id.Adopted
	do(&s.journal, func(id Identity) {
		f.Identity = id
		if recorded {
			s.recordedAt++
		}
	}, id, old)
}

func Seen(r desired.Reader, f *Fragment) bool {
	return r.All || !f.Unclaimed && r.Sees(f.Key.Publisher)
}

func (s *State) SortedFragments() []*Fragment {
	return slices.SortedFunc(maps.Values(s.Fragments), func(a, b *Fragment) int { return a.Key.Compare(b.Key) })
}

func (f *Fragment) SortedHoldings() []*Holding {
	return slices.SortedFunc(maps.Values(f.Tables), func(a, b *Holding) int { return desired.CompareTables(a.Table.ID, b.Table.ID) })
}

// Fragment is the state of one fragment.
type Fragment struct {
	Key desired.Key
	// Owner is Key.String, as in the rules of the kernel, or "" if unclaimed.
	Owner string
	Identity
	// Unclaimed marks State.Unclaimed.
	Unclaimed bool
	Tables    map[nft.TableID]*Holding
	// Holds is the usage, Shadowed the number of elements with hidden data.
	Holds    desired.Usage
	Shadowed int
}

type Holding struct {
	Fragment *Fragment
	Table    *Table
	Comment  string
	Shares   map[ObjectID]Share
	// Apart is true if a Record keeps the shares apart from the fragment, Recorded if all are
	// stored there.
	Apart, Recorded bool
	Dormant         Dormancy
}

// Compare orders fragments by precedence. The unclaimed fragment comes last.
func (f *Fragment) Compare(g *Fragment) int {
	return cmp.Or(Count(f.Unclaimed)-Count(g.Unclaimed), cmp.Compare(f.Priority, g.Priority), f.Key.Compare(g.Key))
}

func NewFragment(key desired.Key, id Identity) *Fragment {
	return &Fragment{Key: key, Owner: key.String(), Identity: id, Tables: map[nft.TableID]*Holding{}}
}

func (f *Fragment) String() string {
	switch {
	case f.Unclaimed:
		return "no fragment (unclaimed since the restart)"
	case f.Adopted:
		return "fragment " + f.Key.String() + " (committed before the restart, not yet published again)"
	default:
		return "fragment " + f.Key.String()
	}
}

// setFragment puts a fragment; nil removes it.
func (s *State) setFragment(key desired.Key, f *Fragment) {
	s.noteLifetime(key, s.Fragments[key])
	do(&s.journal, func(f *Fragment) { s.WriteFragment(key, f) }, f, s.Fragments[key])
}

// WriteFragment is setFragment without journal.
func (s *State) WriteFragment(key desired.Key, f *Fragment) {
	s.recordedAt++
	if old := s.Fragments[key]; old != nil {
		s.charge(old, desired.Usage{Fragments: 1}, -1)
	}
	if f == nil {
		delete(s.Fragments, key)
		return
	}
	s.charge(f, desired.Usage{Fragments: 1}, +1)
	s.Fragments[key] = f
}

// Hold returns a fragment's holding, and makes a missing one.
func (f *Fragment) Hold(s *State, id nft.TableID) *Holding {
	if h, ok := f.Tables[id]; ok {
		return h
	}
	t := s.Table(id)
	s.stamp(&t.Origin)
	h := &Holding{Fragment: f, Table: t, Shares: map[ObjectID]Share{}}
	do(&s.journal, func(in bool) { h.write(&s.observed, in) }, true, false)
	return h
}

func (h *Holding) release(s *State) {
	s.MarkTable(h.Table)
	s.stamp(&h.Table.Origin)
	do(&s.journal, func(in bool) { h.write(&s.observed, in) }, false, true)
}

func (h *Holding) write(b *observed, in bool) {
	t := h.Table
	b.scopeChanges(t.ID)
	b.unrecord(nil)
	if in {
		h.Fragment.Tables[t.ID] = h
		t.Holdings = append(t.Holdings, h)
		return
	}
	delete(h.Fragment.Tables, t.ID)
	i := slices.Index(t.Holdings, h)
	t.Holdings = slices.Delete(t.Holdings, i, i+1)
}

func identityOf(u *desired.Update) Identity {
	return Identity{Priority: u.Priority, Lifetime: u.Lifetime, Expires: u.Expires, Session: u.Session, Serial: u.Serial}
}
