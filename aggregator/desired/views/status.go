package views

import (
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/nft/compile"
)

func Fragment(s *merge.State, key desired.Key) (desired.Status, bool) {
	f, ok := s.Fragments[key]
	if !ok {
		return desired.Status{}, false
	}
	return StatusOf(f), true
}

// Fragments returns the status of all fragments by publisher and name, at the cost of their number.
func Fragments(s *merge.State) []desired.Status {
	all := make([]desired.Status, 0, len(s.Fragments))
	for _, f := range s.SortedFragments() {
		all = append(all, StatusOf(f))
	}
	return all
}

// SessionFragments returns the fragments with a last snapshot from a session, by publisher and
// name.
func SessionFragments(s *merge.State, session uint64) []desired.Key {
	var keys []desired.Key
	for key, f := range s.Fragments {
		if f.Session == session {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, desired.Key.Compare)
	return keys
}

// Awaited reports whether adopted fragments wait for snapshots, and whether one has a map with
// watched flows.
func Awaited(s *merge.State) (fragments, flows bool) {
	for _, f := range s.Fragments {
		if !f.Adopted {
			continue
		}
		fragments = true
		for _, h := range f.Tables {
			for _, sh := range h.Shares {
				sh, ok := sh.(*merge.SetShare)
				flows = flows || ok && sh.Conntrack
			}
		}
	}
	return fragments, flows
}

func StatusOf(f *merge.Fragment) desired.Status {
	return desired.Status{
		Key: f.Key, Priority: f.Priority, Lifetime: f.Lifetime, Expires: f.Expires, Session: f.Session, Serial: f.Serial, Adopted: f.Adopted,
		Chains: f.Holds.Chains, Rules: f.Holds.Rules, Sets: f.Holds.Sets, Elements: f.Holds.Elements, Objects: f.Holds.Objects,
		Shadowed: f.Shadowed,
	}
}

// Content returns a fragment as the tables of a snapshot, sorted, rules in order. Sets have a View
// in place of Elements. Adopted rules have a fingerprint and no text.
func Content(s *merge.State, key desired.Key) ([]desired.TableUpdate, bool) {
	f, ok := s.Fragments[key]
	if !ok {
		return nil, false
	}
	var tables []desired.TableUpdate
	for _, h := range f.SortedHoldings() {
		tu := desired.TableUpdate{Table: h.Table.ID, Comment: h.Comment, Dormant: h.Dormant != merge.Awake}
		for _, id := range merge.SortedObjects(h.Shares) {
			switch sh := h.Shares[id].(type) {
			case *merge.ObjectShare:
				if sh.Decl.Object != nil {
					tu.PutObjects = append(tu.PutObjects, sh.Decl.Object)
				} else {
					tu.PutFlowtables = append(tu.PutFlowtables, sh.Decl.Flowtable)
				}
			case *merge.ChainShare:
				c := desired.Chain{Decl: sh.Decl, Source: sh.Source, Rules: make([]*compile.Rule, len(sh.Rules))}
				for i, r := range sh.Rules {
					c.Rules[i] = r.Rule
				}
				tu.PutChains = append(tu.PutChains, c)
			case *merge.SetShare:
				tu.PutSets = append(tu.PutSets, desired.Set{
					Decl: sh.Decl, Source: sh.Source, Conntrack: sh.Conntrack, Affinity: sh.Affinity,
					View: sh.Elements.View(),
				})
			default:
				panic(fmt.Sprintf("desired: share %T is unknown", sh))
			}
		}
		tables = append(tables, tu)
	}
	return tables, true
}
