package views

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/merge"
	"github.com/weft-proxy/weft/nft"
)

// Tables returns the status of visible tables, by family and name. It costs chains and sets, not
// rules and elements.
func Tables(s *merge.State, r desired.Reader) []desired.TableStatus {
	all := make([]desired.TableStatus, 0, len(s.Tables))
	for _, t := range s.Tables {
		if seenBy(t, r) {
			all = append(all, tableStatus(t, r))
		}
	}
	slices.SortFunc(all, func(a, b desired.TableStatus) int { return desired.CompareTables(a.Table, b.Table) })
	return all
}

// Merged returns the visible content of a table, or nil; exists is true also for an invisible
// table. It copies rules and shares elements. It returns each set in sets with elements, whatever
// the detail.
func Merged(s *merge.State, id nft.TableID, detail desired.Detail, r desired.Reader, sets map[string]struct{}) (m *desired.Merged, exists bool) {
	t := s.Existing(id)
	if !seenBy(t, r) {
		return nil, t.Exists()
	}
	m = &desired.Merged{Status: tableStatus(t, r)}
	for _, p := range t.SortedParts() {
		_, isObject := p.(*merge.Object)
		_, isSet := p.(*merge.Set)
		_, named := sets[p.Base().ID.Name]
		named = isSet && named
		if !isObject && !named && detail == desired.DetailObjects {
			continue
		}
		seen := seen(p, r)
		if len(seen) == 0 {
			continue
		}
		switch o := p.(type) {
		case *merge.Object:
			m.Objects = append(m.Objects, desired.MergedObject{Object: o.Decl().Object, Flowtable: o.Decl().Flowtable, Fragments: keysOf(seen)})
		case *merge.Chain:
			rules := o.Rules
			if detail == desired.DetailPlanned && s.Plan != nil {
				if planned, ok := s.Plan.Orders[o]; ok {
					rules = planned
				}
			}
			c := mergedChain(o, r, rules)
			c.Fragments = keysOf(seen)
			m.Chains = append(m.Chains, c)
		case *merge.Set:
			ms := desired.MergedSet{Decl: o.Decl(), Source: sourceOf(o.Shares, r, func(sh *merge.SetShare) *nft.Set { return sh.Source }), Fragments: keysOf(seen)}
			if named || detail >= desired.DetailElements {
				ms.Elements = o.View(r)
			}
			m.Sets = append(m.Sets, ms)
		default:
			panic(fmt.Sprintf("desired: part %T is unknown", o))
		}
	}
	return m, true
}

func seenBy(t *merge.Table, r desired.Reader) bool {
	return slices.ContainsFunc(t.Holdings, func(h *merge.Holding) bool { return merge.Seen(r, h.Fragment) })
}

func seen(p merge.Part, r desired.Reader) []*merge.Fragment {
	return slices.DeleteFunc(p.Fragments(), func(f *merge.Fragment) bool { return !merge.Seen(r, f) })
}

func tableStatus(t *merge.Table, r desired.Reader) desired.TableStatus {
	st := desired.TableStatus{Table: t.ID, Dormant: t.Dormant()}
	for _, h := range t.InOrder() {
		if !merge.Seen(r, h.Fragment) {
			continue
		}
		st.Comment = cmp.Or(st.Comment, h.Comment)
		if !h.Fragment.Unclaimed {
			st.Fragments = append(st.Fragments, h.Fragment.Key)
		}
	}
	for _, p := range t.Parts {
		if len(seen(p, r)) == 0 {
			continue
		}
		switch o := p.(type) {
		case *merge.Object:
			st.Objects++
		case *merge.Chain:
			st.Chains++
			if r.All {
				st.Rules += len(o.Rules)
			} else {
				st.Rules += total(o.Shares, r, func(sh *merge.ChainShare) int { return len(sh.Rules) })
			}
		case *merge.Set:
			st.Sets++
			if r.All {
				st.Elements += o.Size()
			} else { // stated elements, in force or not
				st.Elements += total(o.Shares, r, func(sh *merge.SetShare) int { return sh.Elements.Len() })
			}
			st.Shadowed += total(o.Shares, r, func(sh *merge.SetShare) int { return sh.Shadowed })
		default:
			panic(fmt.Sprintf("desired: part %T is unknown", o))
		}
	}
	return st
}

// keysOf leaves out the unclaimed fragment.
func keysOf(fragments []*merge.Fragment) []desired.Key {
	keys := make([]desired.Key, 0, len(fragments))
	for _, f := range fragments {
		if !f.Unclaimed {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

// total adds up what the reader sees of the shares.
func total[T merge.Share](shares []T, r desired.Reader, of func(T) int) (n int) {
	for _, sh := range shares {
		if merge.Seen(r, sh.Owner()) {
			n += of(sh)
		}
	}
	return n
}

// sourceOf returns the first known visible source, or nil.
func sourceOf[T merge.Share, S any](shares []T, r desired.Reader, of func(T) *S) *S {
	for _, sh := range shares {
		if source := of(sh); source != nil && merge.Seen(r, sh.Owner()) {
			return source
		}
	}
	return nil
}

func mergedChain(o *merge.Chain, reader desired.Reader, rules []*merge.Slot) desired.MergedChain {
	c := desired.MergedChain{Decl: o.Decl(), Source: sourceOf(o.Shares, reader, func(sh *merge.ChainShare) *nft.Chain { return sh.Source })}
	c.Rules = make([]desired.MergedRule, 0, len(rules))
	for _, r := range rules {
		if !reader.All && !seesOwner(reader, r.Owner) {
			continue
		}
		m := desired.MergedRule{Rule: r.Rule, Owner: r.Owner}
		if r.Handle != nil {
			m.Handle = r.Handle.N
		}
		c.Rules = append(c.Rules, m)
	}
	return c
}

func seesOwner(r desired.Reader, owner string) bool {
	publisher, _, _ := strings.Cut(owner, "/")
	return r.Sees(publisher)
}
