package aggregator

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// ListTables returns the tables that weft has in the kernel, by family and name.
//
// Possible errors: ErrStandby, ErrStopped, ctx's.
func (a *Aggregator) ListTables(ctx context.Context) (*weftv1.ListTablesResponse, error) {
	var tables []desired.TableStatus
	resp := &weftv1.ListTablesResponse{}
	if err := a.ask(ctx, func(w *writer) { tables, resp.Revision = w.state.Tables(), w.revision }); err != nil {
		return nil, err
	}
	for i := range tables {
		resp.Tables = append(resp.Tables, tableStatus(&tables[i]))
	}
	return resp, nil
}

// GetTable returns the merged content of a table in parts of about 1 MiB; terse
// leaves the elements of its sets out. Of rules from before a restart the text is not known until
// their publisher is back.
//
// Possible errors: ErrInvalidName (the family), ErrNoObject, ErrStandby,
// ErrStopped, ctx's.
func (a *Aggregator) GetTable(ctx context.Context, family, name string, terse bool) (iter.Seq[*weftv1.GetTableResponse], error) {
	id, err := tableID(family, name)
	if err != nil {
		return nil, err
	}
	var v tableView
	if err := a.ask(ctx, func(w *writer) { v = w.viewTable(id, !terse) }); err != nil {
		return nil, err
	}
	if v.merged == nil {
		return nil, fmt.Errorf("%w: weft has no table %s", ErrNoObject, admission.Clip(id.String()))
	}
	return v.parts(partBytes), nil
}

func tableID(family, name string) (nft.TableID, error) {
	f, err := nft.ParseFamily(family)
	if err != nil {
		return nft.TableID{}, fmt.Errorf("%w: %w", ErrInvalidName, err)
	}
	return nft.TableID{Family: f, Name: name}, nil
}

// tableView is what the writer hands out of a table.
type tableView struct {
	merged   *desired.Merged
	revision uint64
}

func (w *writer) viewTable(id nft.TableID, elements bool) tableView {
	v := tableView{revision: w.revision}
	v.merged, _ = w.state.Merged(id, elements)
	return v
}

// chain returns a chain's declaration as a fragment wrote it, or as the kernel
// has it.
func (v *tableView) chain(c *desired.MergedChain) nft.Chain {
	if c.Source != nil {
		return *c.Source
	}
	return c.Decl.Declaration(v.merged.Status.Table.Family)
}

// set is chain for sets and maps.
func (v *tableView) set(s *desired.MergedSet) nft.Set {
	if s.Source != nil {
		return *s.Source
	}
	return s.Decl.Declaration()
}

// parts returns a table as messages of about limit bytes.
func (v *tableView) parts(limit int) iter.Seq[*weftv1.GetTableResponse] {
	return func(yield func(*weftv1.GetTableResponse) bool) {
		b := tableParts{view: v, yield: yield, part: &weftv1.GetTableResponse{Revision: v.revision, Status: tableStatus(&v.merged.Status)}}
		b.parts = parts{limit: limit, send: b.next}
		if b.addObjects() && b.addChains() && b.addSets() {
			yield(b.part)
		}
	}
}

// tableParts builds the parts of a table.
type tableParts struct {
	view  *tableView
	yield func(*weftv1.GetTableResponse) bool
	parts parts
	part  *weftv1.GetTableResponse
}

// next yields the present part and begins another one.
func (b *tableParts) next() bool {
	more := b.yield(b.part)
	b.part = &weftv1.GetTableResponse{}
	return more
}

func (b *tableParts) addObjects() bool {
	for _, o := range b.view.merged.Objects {
		if o.Flowtable != nil {
			m := &weftv1.MergedFlowtable{Flowtable: flowtableMessage(o.Flowtable), Fragments: namesOf(o.Fragments)}
			if _, stop := b.parts.fit(m); stop {
				return false
			}
			b.part.Flowtables = append(b.part.Flowtables, m)
			continue
		}
		m := &weftv1.MergedObject{Object: objectMessage(o.Object), Fragments: namesOf(o.Fragments)}
		if _, stop := b.parts.fit(m); stop {
			return false
		}
		b.part.Objects = append(b.part.Objects, m)
	}
	return true
}

func (b *tableParts) addChains() bool {
	for i := range b.view.merged.Chains {
		c := &b.view.merged.Chains[i]
		m := &weftv1.MergedChain{Chain: chainMessage(c.Decl.Name, b.view.chain(c)), Fragments: namesOf(c.Fragments)}
		if _, stop := b.parts.fit(m); stop {
			return false
		}
		b.part.Chains = append(b.part.Chains, m)
		for _, r := range c.Rules {
			rule := &weftv1.MergedRule{Rule: &weftv1.Rule{Text: r.Rule.Text, Comment: r.Rule.Comment}, Handle: r.Handle, Fragment: ownerName(r.Owner)}
			next, stop := b.parts.fit(rule)
			if stop {
				return false
			}
			if next {
				m = &weftv1.MergedChain{Chain: &weftv1.Chain{Name: c.Decl.Name}}
				b.part.Chains = append(b.part.Chains, m)
			}
			m.Rules = append(m.Rules, rule)
		}
	}
	return true
}

func (b *tableParts) addSets() bool {
	for i := range b.view.merged.Sets {
		s := &b.view.merged.Sets[i]
		m := &weftv1.MergedSet{Set: setMessage(b.view.set(s), desired.Set{Decl: s.Decl}), Map: s.Decl.Map, Fragments: namesOf(s.Fragments)}
		if _, stop := b.parts.fit(m); stop {
			return false
		}
		b.part.Sets = append(b.part.Sets, m)
		slices.SortFunc(s.Elements, compareElements)
		for j := range s.Elements {
			e := elementMessage(s.Decl, &s.Elements[j])
			next, stop := b.parts.fit(e)
			if stop {
				return false
			}
			if next {
				m = &weftv1.MergedSet{Set: &weftv1.Set{Name: s.Decl.Name}, Map: s.Decl.Map}
				b.part.Sets = append(b.part.Sets, m)
			}
			m.Set.Elements = append(m.Set.Elements, e)
		}
	}
	return true
}

// compareElements orders elements of one set by their packed keys: numbers and
// addresses come in their own order.
func compareElements(a, b set.Element) int {
	if c := strings.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return strings.Compare(a.KeyEnd, b.KeyEnd)
}

func tableStatus(st *desired.TableStatus) *weftv1.TableStatus {
	return &weftv1.TableStatus{
		Family: st.Table.Family.String(), Name: st.Table.Name, Comment: st.Comment, Fragments: namesOf(st.Fragments),
		Chains: uint32(st.Chains), Rules: uint32(st.Rules), Sets: uint32(st.Sets), //nolint:gosec // counts
		Elements: uint64(st.Elements), Shadowed: uint64(st.Shadowed), //nolint:gosec // counts
		Objects: uint32(st.Objects), Flags: flagsMessage(st.Dormant), //nolint:gosec // a count
	}
}
