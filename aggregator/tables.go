package aggregator

import (
	"context"
	"fmt"
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

// GetTable returns the merged content of a table; terse leaves the elements of
// its sets out. Of rules from before a restart the text is not known until
// their publisher is back.
//
// Possible errors: ErrInvalidName (the family), ErrNoObject, ErrStandby,
// ErrStopped, ctx's.
func (a *Aggregator) GetTable(ctx context.Context, family, name string, terse bool) (*weftv1.GetTableResponse, error) {
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
	return v.message(), nil
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

// message puts a table into the words of the wire.
func (v *tableView) message() *weftv1.GetTableResponse {
	resp := &weftv1.GetTableResponse{Revision: v.revision, Status: tableStatus(&v.merged.Status)}
	for _, o := range v.merged.Objects {
		if o.Flowtable != nil {
			resp.Flowtables = append(resp.Flowtables, &weftv1.MergedFlowtable{Flowtable: flowtableMessage(o.Flowtable), Fragments: names(o.Fragments)})
		} else {
			resp.Objects = append(resp.Objects, &weftv1.MergedObject{Object: objectMessage(o.Object), Fragments: names(o.Fragments)})
		}
	}
	for i := range v.merged.Chains {
		c := &v.merged.Chains[i]
		m := &weftv1.MergedChain{
			Chain:     chainMessage(v.chain(c), desired.Chain{Decl: c.Decl}),
			Fragments: names(c.Fragments), Rules: make([]*weftv1.MergedRule, 0, len(c.Rules)),
		}
		for _, r := range c.Rules {
			m.Rules = append(m.Rules, &weftv1.MergedRule{
				Rule: &weftv1.Rule{Text: r.Rule.Text, Comment: r.Rule.Comment}, Handle: r.Handle, Fragment: r.Owner,
			})
		}
		resp.Chains = append(resp.Chains, m)
	}
	for i := range v.merged.Sets {
		s := &v.merged.Sets[i]
		slices.SortFunc(s.Elements, compareElements)
		resp.Sets = append(resp.Sets, &weftv1.MergedSet{
			Set: setMessage(v.set(s), desired.Set{Decl: s.Decl, Elements: s.Elements}),
			Map: s.Decl.Map, Fragments: names(s.Fragments),
		})
	}
	return resp
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
		Family: st.Table.Family.String(), Name: st.Table.Name, Comment: st.Comment, Fragments: names(st.Fragments),
		Chains: uint32(st.Chains), Rules: uint32(st.Rules), Sets: uint32(st.Sets), //nolint:gosec // counts
		Elements: uint64(st.Elements), Shadowed: uint64(st.Shadowed), //nolint:gosec // counts
		Objects: uint32(st.Objects), Flags: flagsMessage(st.Dormant), //nolint:gosec // a count
	}
}

// names returns fragments as "publisher/name".
func names(keys []desired.Key) []string {
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		out = append(out, k.String())
	}
	return out
}
