package desired

import (
	"fmt"
	"slices"

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
	// Elements are the elements in force, in no order, because sorting 100,000
	// elements takes longer than copying them.
	Elements []nftset.Element
}

// Tables returns the status of all tables, by family and name. It costs what
// there is in chains and sets, not in rules and elements.
func (s *State) Tables() []TableStatus {
	all := make([]TableStatus, 0, len(s.tables))
	for _, t := range s.tables {
		if t.exists() {
			all = append(all, t.status())
		}
	}
	slices.SortFunc(all, func(a, b TableStatus) int { return compareTables(a.Table, b.Table) })
	return all
}

// Merged returns the content of a table; without elements its sets are
// declarations alone. It copies, and neither sorts nor formats.
func (s *State) Merged(id nft.TableID, elements bool) (*Merged, bool) {
	t, ok := s.tables[id]
	if !ok || !t.exists() {
		return nil, false
	}
	m := &Merged{Status: t.status()}
	for _, p := range t.sortedParts() {
		if !p.exists() {
			continue
		}
		switch o := p.(type) {
		case *object:
			m.Objects = append(m.Objects, MergedObject{Object: o.decl().object, Flowtable: o.decl().flowtable, Fragments: keysOf(o.fragments())})
		case *chain:
			m.Chains = append(m.Chains, o.mergedChain())
		case *set:
			ms := MergedSet{Decl: o.decl(), Source: sourceOf(o.shares, func(sh *setShare) *nft.Set { return sh.source }), Fragments: keysOf(o.fragments())}
			if elements {
				ms.Elements = o.inForce()
			}
			m.Sets = append(m.Sets, ms)
		default:
			panic(fmt.Sprintf("desired: part %T is unknown", o))
		}
	}
	return m, true
}

func (t *table) status() TableStatus {
	st := TableStatus{Table: t.id, Comment: t.comment(), Dormant: t.dormant()}
	for _, h := range t.inOrder() {
		if !h.fragment.unclaimed {
			st.Fragments = append(st.Fragments, h.fragment.key)
		}
	}
	for _, p := range t.parts {
		if !p.exists() {
			continue
		}
		switch o := p.(type) {
		case *object:
			st.Objects++
		case *chain:
			st.Chains++
			st.Rules += len(o.rules)
		case *set:
			st.Sets++
			st.Elements += o.size()
			for _, sh := range o.shares {
				st.Shadowed += sh.shadowed
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

// sourceOf returns the first source of shares that is known.
func sourceOf[T, S any](shares []T, of func(T) *S) *S {
	for _, sh := range shares {
		if source := of(sh); source != nil {
			return source
		}
	}
	return nil
}

func (o *chain) mergedChain() MergedChain {
	c := MergedChain{Decl: o.decl(), Source: sourceOf(o.shares, func(sh *chainShare) *nft.Chain { return sh.source }), Fragments: keysOf(o.fragments())}
	c.Rules = make([]MergedRule, len(o.rules))
	for i, r := range o.rules {
		c.Rules[i] = MergedRule{Rule: r.rule, Owner: r.owner}
		if r.handle != nil {
			c.Rules[i].Handle = r.handle.N
		}
	}
	return c
}

// inForce returns the merged elements in no order.
func (o *set) inForce() []nftset.Element {
	all := make([]nftset.Element, 0, o.size())
	for i, sh := range o.shares {
		if sh.passive {
			continue
		}
		for id, e := range sh.elements.all() {
			if _, gone := o.lapsed[id]; gone || i > 0 && o.winner(id) != sh {
				continue
			}
			all = append(all, e)
		}
	}
	return all
}

// size returns the number of merged elements as of the last Accept. Elements of
// a passive share, which no other share has, and elements that have timed out
// do not count.
func (o *set) size() int {
	n := o.union
	switch len(o.shares) {
	case 0:
		return 0
	case 1:
		n = o.shares[0].elements.len()
	}
	if sh := o.unclaimed(); sh != nil && sh.passive {
		n -= sh.elements.len()
	}
	return max(n-len(o.lapsed), 0)
}
