package aggregator

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/set"
)

// ListTables returns the tables that weft has in the kernel and in which a reader sees
// something, by family and name. It waits while the aggregator starts.
//
// Possible errors: ErrStandby, ErrStopped, ctx's.
func (a *Aggregator) ListTables(ctx context.Context, r Reader) (*weftv1.ListTablesResponse, error) {
	var tables []desired.TableStatus
	resp := &weftv1.ListTablesResponse{}
	if err := a.ask(ctx, func(w *writer) { tables, resp.Revision = views.Tables(w.state, r), w.revision }); err != nil {
		return nil, err
	}
	for i := range tables {
		resp.Tables = append(resp.Tables, tableStatus(&tables[i]))
	}
	return resp, nil
}

// GetTable returns what a reader sees of the merged content of a table, in parts of about
// 128 KiB, which are made when they are wanted. The text of a rule from before a restart is
// not known until its publisher is back. An empty family is ip. GetTable waits while the
// aggregator starts.
//
// Possible errors: ErrInvalidName (the family), ErrNoObject, ErrHidden, ErrStandby,
// ErrStopped, ctx's; with live also ErrKernel.
func (a *Aggregator) GetTable(ctx context.Context, req *weftv1.GetTableRequest, r Reader) (iter.Seq[*weftv1.GetTableResponse], error) {
	id, err := tableID(req.GetFamily(), req.GetName())
	if err != nil {
		return nil, err
	}
	v := tableView{reader: r, live: &kernel.Live{}, counted: req.GetCounted() && req.GetLive() && req.GetObjectsOnly()}
	exists := false
	detail, sets := detailOf(req), make(map[string]struct{})
	for _, name := range req.GetSets() {
		sets[name] = struct{}{}
	}
	if err := a.ask(ctx, func(w *writer) {
		v.revision = w.revision
		v.merged, exists = views.Merged(w.state, id, detail, r, sets)
	}); err != nil {
		return nil, err
	}
	switch {
	case v.merged != nil:
	case exists:
		return nil, fmt.Errorf("%w: table %s", ErrHidden, admission.Clip(id.String()))
	default:
		return nil, fmt.Errorf("%w: weft has no table %s", ErrNoObject, admission.Clip(id.String()))
	}
	if req.GetLive() {
		if v.live, err = a.dumpLive(ctx, id, req, v.merged); err != nil {
			return nil, err
		}
	}
	return v.parts(partBytes), nil
}

// detailOf returns how much of a table is asked for.
func detailOf(req *weftv1.GetTableRequest) desired.Detail {
	switch {
	case req.GetObjectsOnly():
		return desired.DetailObjects
	case req.GetTerse():
		return desired.DetailRules
	default:
		return desired.DetailElements
	}
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
	reader   Reader
	revision uint64
	// live has the live values, and is empty if they were not asked for.
	live *kernel.Live
	// counted is true if only elements that have counted something are wanted.
	counted bool
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
		b := tableParts{view: v, parts: parts[*weftv1.GetTableResponse]{
			limit: limit, yield: yield, part: &weftv1.GetTableResponse{Revision: v.revision, Status: tableStatus(&v.merged.Status)},
			next: func() *weftv1.GetTableResponse { return &weftv1.GetTableResponse{} },
		}}
		b.addObjects()
		b.addChains()
		b.addSets()
		b.send()
	}
}

// tableParts builds the parts of a table.
type tableParts struct {
	view *tableView
	parts[*weftv1.GetTableResponse]
}

func (b *tableParts) addObjects() {
	live := b.view.live
	for _, o := range b.view.merged.Objects {
		if o.Flowtable != nil {
			m := &weftv1.MergedFlowtable{Flowtable: convert.Flowtable(o.Flowtable.Declaration()), Fragments: namesOf(o.Fragments), Handle: live.Flowtables[o.Flowtable.Name]}
			b.fit(m)
			b.part.Flowtables = append(b.part.Flowtables, m)
			continue
		}
		inKernel := live.Objects[o.Object.Ref()]
		m := &weftv1.MergedObject{Object: convert.Object(o.Object.Declaration()), Fragments: namesOf(o.Fragments), Handle: inKernel.Handle}
		if k := o.Object.Kind; inKernel.Handle != 0 && (k == nft.ObjectCounter || k == nft.ObjectQuota) {
			m.Object.Text = inKernel.Text
		}
		b.fit(m)
		b.part.Objects = append(b.part.Objects, m)
	}
}

func (b *tableParts) addChains() {
	for i := range b.view.merged.Chains {
		if b.done {
			return
		}
		c := &b.view.merged.Chains[i]
		m := &weftv1.MergedChain{Chain: chainMessage(c.Decl.Name, b.view.chain(c)), Fragments: namesOf(c.Fragments), Handle: b.view.live.Chains[c.Decl.Name]}
		b.fit(m)
		b.part.Chains = append(b.part.Chains, m)
		for _, r := range c.Rules {
			rule := &weftv1.MergedRule{Rule: &weftv1.Rule{Text: r.Rule.Text, Comment: r.Rule.Comment}, Handle: r.Handle, Fragment: ownerName(r.Owner), Stateful: b.view.live.Rules[r.Handle]}
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
	for i := range b.view.merged.Sets {
		if b.done {
			return
		}
		s := &b.view.merged.Sets[i]
		m := &weftv1.MergedSet{Set: setMessage(b.view.set(s), desired.Set{Decl: s.Decl}), Map: s.Decl.Map, Fragments: namesOf(s.Fragments), Handle: b.view.live.Sets[s.Decl.Name]}
		inForce, added := b.view.elements(s, m)
		b.fit(m)
		b.part.Sets = append(b.part.Sets, m)
		b.addElements(s.Decl, inForce, false)
		b.addElements(s.Decl, added, true)
	}
}

// elements returns the elements of a set that are in force, and those that packets have
// added. A reader who does not see all does not see the latter: they may be another
// publisher's.
func (v *tableView) elements(s *desired.MergedSet, m *weftv1.MergedSet) (inForce, added iter.Seq[set.Element]) {
	none := slices.Values([]set.Element(nil))
	if s.Elements == nil {
		return none, none
	}
	live, ok := v.live.Elements[s.Decl.Name]
	if !ok {
		return s.Elements.Sorted(), none
	}
	var own, more []set.Element
	if v.counted {
		slices.SortFunc(live.Elements, compareElements)
		own, more = s.Elements.Divide(s.Decl, live.Elements)
	} else {
		own, more = splitLive(slices.SortedFunc(s.Elements.Sorted(), compareElements), live)
	}
	if !v.reader.All {
		return slices.Values(own), none
	}
	m.MoreAdded = live.More
	return slices.Values(own), slices.Values(more)
}

// addElements appends to the last set of the part.
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

// compareElements orders elements of one set by their packed keys: numbers and
// addresses come in their own order.
func compareElements(a, b set.Element) int {
	return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.KeyEnd, b.KeyEnd))
}

func tableStatus(st *desired.TableStatus) *weftv1.TableStatus {
	return &weftv1.TableStatus{
		Family: st.Table.Family.String(), Name: st.Table.Name, Comment: st.Comment, Fragments: namesOf(st.Fragments),
		Chains: uint32(st.Chains), Rules: uint32(st.Rules), Sets: uint32(st.Sets), //nolint:gosec // counts
		Elements: uint64(st.Elements), Shadowed: uint64(st.Shadowed), //nolint:gosec // counts
		Objects: uint32(st.Objects), Flags: flagsMessage(st.Dormant), //nolint:gosec // a count
	}
}
