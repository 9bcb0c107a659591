package desired

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-proxy/weft/nft/compile"
)

// Status says how much a fragment holds.
type Status struct {
	Key      Key
	Priority int32
	Lifetime Lifetime
	// Expires is when the fragment is to be withdrawn; zero means never.
	Expires time.Time
	// Session and Serial are those of the last snapshot. They are 0 if it came from
	// no session, and for an adopted fragment.
	Session, Serial uint64
	// Adopted is true for a fragment that is known only from before a restart:
	// its publisher has not sent it again.
	Adopted             bool
	Chains, Rules, Sets int
	Elements            int
	// Objects counts named objects and flowtables.
	Objects int
	// Shadowed counts map elements whose value another fragment's hides.
	Shadowed int
}

// Fragment returns one fragment's status.
func (s *State) Fragment(key Key) (Status, bool) {
	f, ok := s.fragments[key]
	if !ok {
		return Status{}, false
	}
	return f.status(), true
}

// Fragments returns the status of all fragments by publisher and name. It costs
// the number of fragments, whatever they hold.
func (s *State) Fragments() []Status {
	all := make([]Status, 0, len(s.fragments))
	for _, f := range s.sorted() {
		all = append(all, f.status())
	}
	return all
}

// Len returns the number of fragments.
func (s *State) Len() int { return len(s.fragments) }

// SessionFragments returns the fragments whose last snapshot a session has sent,
// by publisher and name.
func (s *State) SessionFragments(session uint64) []Key {
	var keys []Key
	for key, f := range s.fragments {
		if f.session == session {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, Key.Compare)
	return keys
}

// Awaited reports whether adopted fragments wait for their snapshots, and
// whether one of them has a map whose flows are watched.
func (s *State) Awaited() (fragments, flows bool) {
	for _, f := range s.fragments {
		if !f.adopted {
			continue
		}
		fragments = true
		for _, h := range f.tables {
			for _, sh := range h.shares {
				sh, ok := sh.(*setShare)
				flows = flows || ok && sh.conntrack
			}
		}
	}
	return fragments, flows
}

// WatchesFlows reports whether there is a map whose flows are watched.
func (s *State) WatchesFlows() bool { return len(s.watched) > 0 }

// Shadowed returns the number of shadowed elements of all fragments.
func (s *State) Shadowed() int { return s.shadowed }

// TakeShadowChanges returns the fragments whose number of shadowed elements may have
// changed since the last call, in no order.
func (s *State) TakeShadowChanges() []Key {
	if len(s.shaded) == 0 {
		return nil
	}
	keys := make([]Key, 0, len(s.shaded))
	for f := range s.shaded {
		if s.fragments[f.key] == f {
			keys = append(keys, f.key)
		}
	}
	clear(s.shaded)
	return keys
}

func (f *fragment) status() Status {
	return Status{
		Key: f.key, Priority: f.priority, Lifetime: f.lifetime, Expires: f.expires, Session: f.session, Serial: f.serial, Adopted: f.adopted,
		Chains: f.holds.Chains, Rules: f.holds.Rules, Sets: f.holds.Sets, Elements: f.holds.Elements, Objects: f.holds.Objects,
		Shadowed: f.shadowed,
	}
}

// Content returns the content of a fragment, as the tables of a snapshot: by table, objects
// by name, rules in order. Sets have a View in place of Elements. Rules of an adopted
// fragment have a fingerprint and no text.
func (s *State) Content(key Key) ([]TableUpdate, bool) {
	f, ok := s.fragments[key]
	if !ok {
		return nil, false
	}
	var tables []TableUpdate
	for _, h := range f.holdings() {
		tu := TableUpdate{Table: h.table.id, Comment: h.comment, Dormant: h.dormant != awake}
		for _, id := range sortedObjects(h.shares) {
			switch sh := h.shares[id].(type) {
			case *objectShare:
				if sh.decl.object != nil {
					tu.PutObjects = append(tu.PutObjects, sh.decl.object)
				} else {
					tu.PutFlowtables = append(tu.PutFlowtables, sh.decl.flowtable)
				}
			case *chainShare:
				c := Chain{Decl: sh.decl, Source: sh.source, Rules: make([]*compile.Rule, len(sh.rules))}
				for i, r := range sh.rules {
					c.Rules[i] = r.rule
				}
				tu.PutChains = append(tu.PutChains, c)
			case *setShare:
				tu.PutSets = append(tu.PutSets, Set{
					Decl: sh.decl, Source: sh.source, Conntrack: sh.conntrack, Affinity: sh.affinity,
					View: sh.elements.View(),
				})
			default:
				panic(fmt.Sprintf("desired: share %T is unknown", sh))
			}
		}
		tables = append(tables, tu)
	}
	return tables, true
}
