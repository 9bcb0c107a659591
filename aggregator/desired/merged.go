package desired

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/aggregator/desired/packed"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
	nftobject "github.com/weft-proxy/weft/nft/object"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// TableStatus describes the content of a table, and the fragments that hold it.
type TableStatus struct {
	Table   nft.TableID
	Comment string
	// Fragments have something in the table, in merge order. Content without a
	// fragment is counted, but in none of them.
	Fragments           []Key
	Chains, Rules, Sets int
	// Objects counts named objects and flowtables.
	Objects int
	// Dormant says that the base chains are off their hooks.
	Dormant bool
	// Elements counts the elements in force, without those that packets put in
	// before a restart. Shadowed counts the elements that another fragment's value
	// hides.
	Elements, Shadowed int
}

// Merged is the content of one table as it is in force. Nothing of it changes
// with the state.
type Merged struct {
	Status TableStatus
	// Chains and Sets are ordered by name, Objects by kind and name.
	Chains  []MergedChain
	Sets    []MergedSet
	Objects []MergedObject
}

// MergedObject is a named object or a flowtable; the other is nil.
type MergedObject struct {
	Object    *nftobject.Object
	Flowtable *nftobject.Flowtable
	Fragments []Key
}

// MergedChain is a chain with its rules in the kernel's order.
type MergedChain struct {
	Decl *nftobject.Chain
	// Source is the declaration as the first fragment wrote it whose text is known,
	// or nil.
	Source    *nft.Chain
	Fragments []Key
	Rules     []MergedRule
}

// MergedRule is a rule in its place. The text of an adopted rule is not known.
type MergedRule struct {
	Rule *compile.Rule
	// Owner is the fragment as "publisher/name", or "" if there is none.
	Owner  string
	Handle uint64
}

// MergedSet is a set or map.
type MergedSet struct {
	Decl *nftset.Set
	// Source is like that of a MergedChain.
	Source    *nft.Set
	Fragments []Key
	// Elements are the elements in force; nil if they were not asked for.
	Elements *packed.View
}

// Tables returns the status of the tables in which a reader sees something, by family and
// name. It costs what there is in chains and sets, not in rules and elements.
func (s *State) Tables(r Reader) []TableStatus {
	all := make([]TableStatus, 0, len(s.tables))
	for _, t := range s.tables {
		if t.seenBy(r) {
			all = append(all, t.status(r))
		}
	}
	slices.SortFunc(all, func(a, b TableStatus) int { return compareTables(a.Table, b.Table) })
	return all
}

// Detail says how much of a table Merged returns.
type Detail int

// The details, each with what is before it.
const (
	// DetailObjects is named objects and flowtables.
	DetailObjects Detail = iota
	// DetailRules is chains with their rules, and the declarations of sets.
	DetailRules
	// DetailElements is the elements of sets.
	DetailElements
	// DetailPlanned is the rules as the last Plan or Preview would leave them, with handles where they have one
	// already.
	DetailPlanned
)

// Merged returns the content of a table that a reader sees. It copies rules, shares elements,
// and neither sorts nor formats.
// With DetailObjects it also returns the sets that are named, with their elements.
// Exists is true if there is such a table: nothing is returned if the reader sees nothing of
// it.
func (s *State) Merged(id nft.TableID, detail Detail, r Reader, sets map[string]struct{}) (m *Merged, exists bool) {
	t := s.existing(id)
	if !t.seenBy(r) {
		return nil, t.exists()
	}
	m = &Merged{Status: t.status(r)}
	for _, p := range t.sortedParts() {
		_, isObject := p.(*object)
		_, isSet := p.(*set)
		_, named := sets[p.base().id.Name]
		named = isSet && named
		if !isObject && !named && detail == DetailObjects {
			continue
		}
		seen := seen(p, r)
		if len(seen) == 0 {
			continue
		}
		switch o := p.(type) {
		case *object:
			m.Objects = append(m.Objects, MergedObject{Object: o.decl().object, Flowtable: o.decl().flowtable, Fragments: keysOf(seen)})
		case *chain:
			rules := o.rules
			if detail == DetailPlanned && s.plan != nil {
				if planned, ok := s.plan.orders[o]; ok {
					rules = planned
				}
			}
			c := o.mergedChain(r, rules)
			c.Fragments = keysOf(seen)
			m.Chains = append(m.Chains, c)
		case *set:
			ms := MergedSet{Decl: o.decl(), Source: sourceOf(o.shares, r, func(sh *setShare) *nft.Set { return sh.source }), Fragments: keysOf(seen)}
			if named || detail >= DetailElements {
				ms.Elements = o.view(r)
			}
			m.Sets = append(m.Sets, ms)
		default:
			panic(fmt.Sprintf("desired: part %T is unknown", o))
		}
	}
	return m, true
}

// seenBy reports whether a reader sees something of a table.
func (t *table) seenBy(r Reader) bool {
	return slices.ContainsFunc(t.holdings, func(h *holding) bool { return r.sees(h.fragment) })
}

// seen returns the fragments with a share of a part that a reader sees.
func seen(p part, r Reader) []*fragment {
	return slices.DeleteFunc(p.fragments(), func(f *fragment) bool { return !r.sees(f) })
}

// status counts what a reader sees of a table.
func (t *table) status(r Reader) TableStatus {
	st := TableStatus{Table: t.id, Dormant: t.dormant()}
	for _, h := range t.inOrder() {
		if !r.sees(h.fragment) {
			continue
		}
		st.Comment = cmp.Or(st.Comment, h.comment)
		if !h.fragment.unclaimed {
			st.Fragments = append(st.Fragments, h.fragment.key)
		}
	}
	for _, p := range t.parts {
		if len(seen(p, r)) == 0 {
			continue
		}
		switch o := p.(type) {
		case *object:
			st.Objects++
		case *chain:
			st.Chains++
			st.Rules += o.count(r)
		case *set:
			st.Sets++
			st.Elements += o.count(r)
			for _, sh := range o.shares {
				if r.sees(sh.fragment) {
					st.Shadowed += sh.shadowed
				}
			}
		default:
			panic(fmt.Sprintf("desired: part %T is unknown", o))
		}
	}
	return st
}

// keysOf returns the keys of fragments, without the unclaimed fragment.
func keysOf(fragments []*fragment) []Key {
	keys := make([]Key, 0, len(fragments))
	for _, f := range fragments {
		if !f.unclaimed {
			keys = append(keys, f.key)
		}
	}
	return keys
}

// count returns the number of rules that a reader sees.
func (o *chain) count(r Reader) (n int) {
	if r.All {
		return len(o.rules)
	}
	for _, sh := range o.shares {
		if r.sees(sh.fragment) {
			n += len(sh.rules)
		}
	}
	return n
}

// count returns the number of elements that a reader sees. Those that a fragment states are
// counted if the reader does not see all, whether they are in force or not.
func (o *set) count(r Reader) (n int) {
	if r.All {
		return o.size()
	}
	for _, sh := range o.shares {
		if r.sees(sh.fragment) {
			n += sh.elements.Len()
		}
	}
	return n
}

// sourceOf returns the first source of shares that is known and that a reader sees.
func sourceOf[T share, S any](shares []T, r Reader, of func(T) *S) *S {
	for _, sh := range shares {
		if source := of(sh); source != nil && r.sees(sh.owner()) {
			return source
		}
	}
	return nil
}

func (o *chain) mergedChain(reader Reader, rules []*slot) MergedChain {
	c := MergedChain{Decl: o.decl(), Source: sourceOf(o.shares, reader, func(sh *chainShare) *nft.Chain { return sh.source })}
	c.Rules = make([]MergedRule, 0, o.count(reader))
	for _, r := range rules {
		if !reader.All && !reader.seesOwner(r.owner) {
			continue
		}
		m := MergedRule{Rule: r.rule, Owner: r.owner}
		if r.handle != nil {
			m.Handle = r.handle.N
		}
		c.Rules = append(c.Rules, m)
	}
	return c
}

// size returns the number of merged elements as of the last Accept. Elements of
// a passive share, which no other share has, do not count.
func (o *set) size() int {
	n := o.union
	switch len(o.shares) {
	case 0:
		return 0
	case 1:
		n = o.shares[0].elements.Len()
	}
	if sh := o.unclaimed(); sh != nil && sh.passive {
		n -= sh.elements.Len()
	}
	return n
}
