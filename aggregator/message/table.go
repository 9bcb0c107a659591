package message

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

// Table is the merged content of a table for a reader.
type Table struct {
	Merged   *desired.Merged
	Reader   desired.Reader
	Revision uint64
	// Live is empty if not requested.
	Live *kernel.Live
	// Counted selects only elements with a nonzero counter.
	Counted bool
}

// chain is as a fragment wrote it, or as the kernel has it.
func (v *Table) chain(c *desired.MergedChain) nft.Chain {
	if c.Source != nil {
		return *c.Source
	}
	return c.Decl.Declaration(v.Merged.Status.Table.Family)
}

func (v *Table) set(s *desired.MergedSet) nft.Set {
	if s.Source != nil {
		return *s.Source
	}
	return s.Decl.Declaration()
}

// Parts returns the table as messages of about limit bytes.
func (v *Table) Parts(limit int) iter.Seq[*weftv1.GetTableResponse] {
	return func(yield func(*weftv1.GetTableResponse) bool) {
		b := tableParts{view: v, parts: parts[*weftv1.GetTableResponse]{
			limit: limit, yield: yield, part: &weftv1.GetTableResponse{Revision: v.Revision, Status: TableStatus(&v.Merged.Status)},
			next: func() *weftv1.GetTableResponse { return &weftv1.GetTableResponse{} },
		}}
		b.addObjects()
		b.addChains()
		b.addSets()
		b.send()
	}
}

type tableParts struct {
	view *Table
	parts[*weftv1.GetTableResponse]
}

func (b *tableParts) addObjects() {
	live := b.view.Live
	for _, o := range b.view.Merged.Objects {
		if o.Flowtable != nil {
			m := &weftv1.MergedFlowtable{Flowtable: convert.Flowtable(o.Flowtable.Declaration()), Fragments: Names(o.Fragments), Handle: live.Flowtables[o.Flowtable.Name]}
			b.fit(m)
			b.part.Flowtables = append(b.part.Flowtables, m)
			continue
		}
		inKernel := live.Objects[o.Object.Ref()]
		m := &weftv1.MergedObject{Object: convert.Object(o.Object.Declaration()), Fragments: Names(o.Fragments), Handle: inKernel.Handle}
		if k := o.Object.Kind; inKernel.Handle != 0 && (k == nft.ObjectCounter || k == nft.ObjectQuota) {
			m.Object.Text = inKernel.Text
		}
		b.fit(m)
		b.part.Objects = append(b.part.Objects, m)
	}
}

func (b *tableParts) addChains() {
	for i := range b.view.Merged.Chains {
		if b.done {
			return
		}
		c := &b.view.Merged.Chains[i]
		m := &weftv1.MergedChain{Chain: chainMessage(c.Decl.Name, b.view.chain(c)), Fragments: Names(c.Fragments), Handle: b.view.Live.Chains[c.Decl.Name]}
		b.fit(m)
		b.part.Chains = append(b.part.Chains, m)
		for _, r := range c.Rules {
			rule := &weftv1.MergedRule{Rule: &weftv1.Rule{Text: r.Rule.Text, Comment: r.Rule.Comment}, Handle: r.Handle, Fragment: Owner(r.Owner), Stateful: b.view.Live.Rules[r.Handle]}
			if b.fit(rule) {
				m = &weftv1.MergedChain{Chain: &weftv1.Chain{Name: c.Decl.Name}}
				b.part.Chains = append(b.part.Chains, m)
			}
			if b.done {
				return
			}
			m.Rules = append(m.Rules, rule)
		}
	}
}

func (b *tableParts) addSets() {
	for i := range b.view.Merged.Sets {
		if b.done {
			return
		}
		s := &b.view.Merged.Sets[i]
		m := &weftv1.MergedSet{Set: setMessage(b.view.set(s), desired.Set{Decl: s.Decl}), Map: s.Decl.Map, Fragments: Names(s.Fragments), Handle: b.view.Live.Sets[s.Decl.Name]}
		inForce, added := b.view.elements(s, m)
		b.fit(m)
		b.part.Sets = append(b.part.Sets, m)
		b.addElements(s.Decl, inForce, false)
		b.addElements(s.Decl, added, true)
	}
}

// elements hides elements added by packets from a reader with limited rights: they may be another
// publisher's.
func (v *Table) elements(s *desired.MergedSet, m *weftv1.MergedSet) (inForce, added iter.Seq[set.Element]) {
	none := slices.Values([]set.Element(nil))
	if s.Elements == nil {
		return none, none
	}
	live, ok := v.Live.Elements[s.Decl.Name]
	if !ok {
		return s.Elements.Sorted(), none
	}
	var own, more []set.Element
	if v.Counted {
		slices.SortFunc(live.Elements, compareElements)
		own, more = s.Elements.Divide(s.Decl, live.Elements)
	} else {
		own, more = splitLive(slices.SortedFunc(s.Elements.Sorted(), compareElements), live)
	}
	if !v.Reader.All {
		return slices.Values(own), none
	}
	m.MoreAdded = live.More
	return slices.Values(own), slices.Values(more)
}

func (b *tableParts) addElements(decl *set.Set, elements iter.Seq[set.Element], added bool) {
	for element := range elements {
		e := elementMessage(decl, &element, time.Time{})
		if b.fit(e) {
			b.part.Sets = append(b.part.Sets, &weftv1.MergedSet{Set: &weftv1.Set{Name: decl.Name}, Map: decl.Map})
		}
		if b.done {
			return
		}
		if m := b.part.Sets[len(b.part.Sets)-1]; added {
			m.Added = append(m.Added, e)
		} else {
			m.Set.Elements = append(m.Set.Elements, e)
		}
	}
}

// compareElements orders by packed keys: numbers and addresses come in their own order.
func compareElements(a, b set.Element) int {
	return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.KeyEnd, b.KeyEnd))
}

func TableStatus(st *desired.TableStatus) *weftv1.TableStatus {
	return &weftv1.TableStatus{
		Family: st.Table.Family.String(), Name: st.Table.Name, Comment: st.Comment, Fragments: Names(st.Fragments),
		Chains: uint32(st.Chains), Rules: uint32(st.Rules), Sets: uint32(st.Sets), //nolint:gosec // counts
		Elements: uint64(st.Elements), Shadowed: uint64(st.Shadowed), //nolint:gosec // counts
		Objects: uint32(st.Objects), Flags: flagsMessage(st.Dormant), //nolint:gosec // a count
	}
}

// splitLive divides the elements of a set into fragments' elements, with their kernel state, and elements
// added by packets. The merged elements must be ordered by compareElements. Elements missing in live have
// expired and are left out, unless live.More.
func splitLive(merged []set.Element, live kernel.LiveElements) (inForce, added []set.Element) {
	slices.SortFunc(live.Elements, compareElements)
	for _, e := range live.Elements {
		for len(merged) > 0 && compareElements(merged[0], e) < 0 {
			if live.More {
				inForce = append(inForce, merged[0])
			}
			merged = merged[1:]
		}
		if len(merged) > 0 && compareElements(merged[0], e) == 0 {
			inForce, merged = append(inForce, e), merged[1:]
		} else {
			added = append(added, e)
		}
	}
	if live.More {
		inForce = append(inForce, merged...)
	}
	return inForce, added
}
