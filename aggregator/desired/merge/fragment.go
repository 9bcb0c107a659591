package merge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
)

// Identity is replaced as a whole by a snapshot.
type Identity struct {
	Priority int32
	Lifetime desired.Lifetime
	Expires  time.Time
	// Session and Serial are 0 without a session.
	Session, Serial uint64
	// Adopted is true from adopt.Dump to the snapshot.
	Adopted bool
}

// No list may have the shares while the priority changes.
func (s *State) setIdentity(f *Fragment, id Identity) {
	if id.Lifetime != f.Lifetime {
		s.noteLifetime(f.Key)
	}
	old := f.Identity
	recorded := old.Priority != id.Priority || old.Lifetime != id.Lifetime || old.Expires != id.Expires || old.Adopted != id.Adopted
	do(s, func(id Identity) {
		f.Identity = id
		if recorded {
			s.recordedAt++
		}
	}, id, old)
}

func (s *State) noteLifetime(key desired.Key) {
	if _, ok := s.Lifetimes[key]; ok {
		return
	}
	s.Lifetimes[key] = desired.LifetimeUnspecified
	if f := s.Fragments[key]; f != nil {
		s.Lifetimes[key] = f.Lifetime
	}
}

// AcceptLifetimes accepts the present lifetimes.
func (s *State) AcceptLifetimes() {
	for key, before := range s.Lifetimes {
		if f := s.Fragments[key]; f != nil && before != desired.LifetimeUnspecified && before != f.Lifetime {
			// The record may have the earlier lifetime.
			s.recordedAt++
		}
	}
}

func Seen(r desired.Reader, f *Fragment) bool {
	return r.All || !f.Unclaimed && r.Sees(f.Key.Publisher)
}

// SortedFragments returns the fragments by publisher and name.
func (s *State) SortedFragments() []*Fragment {
	return slices.SortedFunc(maps.Values(s.Fragments), func(a, b *Fragment) int { return a.Key.Compare(b.Key) })
}

// SortedHoldings returns the fragment's holdings by table.
func (f *Fragment) SortedHoldings() []*Holding {
	return slices.SortedFunc(maps.Values(f.Tables), func(a, b *Holding) int { return desired.CompareTables(a.Table.ID, b.Table.ID) })
}

// Fragment has an identity and holdings.
type Fragment struct {
	Key desired.Key
	// Owner is the key in rules, or "" if unclaimed.
	Owner string
	Identity
	// Unclaimed marks the one fragment for content without a fragment.
	Unclaimed bool
	Tables    map[nft.TableID]*Holding
	// Shadowed counts elements with hidden data.
	Holds    desired.Usage
	Shadowed int
}

// Holding has the shares of a fragment in one table.
type Holding struct {
	Fragment *Fragment
	Table    *Table
	Comment  string
	Shares   map[ObjectID]Share
	// Apart: a Record keeps the shares apart from the fragment. Recorded: all are stored.
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

// A nil f removes the fragment.
func (s *State) setFragment(key desired.Key, f *Fragment) {
	s.noteLifetime(key)
	do(s, func(f *Fragment) { s.WriteFragment(key, f) }, f, s.Fragments[key])
}

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
func (s *State) Hold(f *Fragment, id nft.TableID) *Holding {
	if h, ok := f.Tables[id]; ok {
		return h
	}
	t := s.Table(id)
	s.stamp(&t.Origin)
	h := &Holding{Fragment: f, Table: t, Shares: map[ObjectID]Share{}}
	s.writeHolding(h, true)
	s.undo = append(s.undo, func() { s.writeHolding(h, false) })
	return h
}

func (s *State) release(h *Holding) {
	s.MarkTable(h.Table)
	s.stamp(&h.Table.Origin)
	s.writeHolding(h, false)
	s.undo = append(s.undo, func() { s.writeHolding(h, true) })
}

func (s *State) writeHolding(h *Holding, in bool) {
	t := h.Table
	s.scopeChanges(t.ID)
	s.recordedAt++
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
