package aggregator

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/desired/views"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// List returns the status of all fragments, ordered by publisher and name, and
// the last revision. It returns what is known at once, also during the start and on
// standby. The messages are shared: they must not be changed.
func (a *Aggregator) List() (fragments []*weftv1.FragmentStatus, revision uint64) {
	fragments, revision = a.statuses.list()
	for i, f := range fragments {
		fragments[i] = a.present(f)
	}
	return fragments, revision
}

// Get returns one fragment's status and its committed content in canonical form,
// in parts of about 128 KiB, which are made when they are wanted. It waits while the aggregator starts. Of an adopted
// fragment, which has not come back since a restart, only what the kernel holds is
// known: names, and the elements of sets.
//
// Possible errors: ErrInvalidName, ErrNotFound, ErrStandby, ErrStopped, ctx's.
func (a *Aggregator) Get(ctx context.Context, publisher, name string) (*weftv1.FragmentStatus, iter.Seq[*weftv1.Fragment], error) {
	key := desired.Key{Publisher: publisher, Name: name}
	if err := admission.CheckKey(key); err != nil {
		return nil, nil, err
	}
	var status *weftv1.FragmentStatus
	var tables []desired.TableUpdate
	// Nothing of them changes, so that this goroutine can sort them and make messages.
	if err := a.ask(ctx, func(w *writer) { status = w.statuses.get(key); tables, _ = views.Content(w.state, key) }); err != nil {
		return nil, nil, err
	}
	if status == nil {
		return nil, nil, fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	return a.present(status), fragmentInParts(head(name, status.GetPriority(), status.GetLifetime(), status.GetExpireTime()), tables, time.Time{}, partBytes), nil
}

// fragmentMessage returns a fragment with what updates put into tables. If stated is not zero, the elements
// say when they expire that were stated at that time.
func fragmentMessage(head *weftv1.Fragment, tables []desired.TableUpdate, stated time.Time) *weftv1.Fragment {
	for f := range fragmentInParts(head, tables, stated, math.MaxInt) {
		return f
	}
	return head
}

// fragmentInParts returns a fragment as messages of about limit bytes. The first one
// has the head.
func fragmentInParts(head *weftv1.Fragment, tables []desired.TableUpdate, stated time.Time, limit int) iter.Seq[*weftv1.Fragment] {
	return func(yield func(*weftv1.Fragment) bool) {
		b := fragmentParts{parts: parts[*weftv1.Fragment]{limit: limit, yield: yield, part: head}, stated: stated}
		b.next = b.nextPart
		for i := range tables {
			b.addTable(&tables[i])
		}
		b.send()
	}
}

// fragmentParts builds the parts of a fragment.
type fragmentParts struct {
	parts[*weftv1.Fragment]
	table *weftv1.Table
	// stated is as in fragmentMessage.
	stated time.Time
}

// nextPart begins another part in the same table.
func (b *fragmentParts) nextPart() *weftv1.Fragment {
	b.table = &weftv1.Table{Family: b.table.GetFamily(), Name: b.table.GetName()}
	return &weftv1.Fragment{Name: b.part.GetName(), Tables: []*weftv1.Table{b.table}}
}

func (b *fragmentParts) addTable(t *desired.TableUpdate) {
	b.table = &weftv1.Table{Family: t.Table.Family.String(), Name: t.Table.Name, Comment: t.Comment, Flags: flagsMessage(t.Dormant)}
	b.part.Tables = append(b.part.Tables, b.table)
	for _, o := range t.PutObjects {
		m := convert.Object(o.Declaration())
		b.fit(m)
		b.table.Objects = append(b.table.Objects, m)
	}
	for _, ft := range t.PutFlowtables {
		m := convert.Flowtable(ft.Declaration())
		b.fit(m)
		b.table.Flowtables = append(b.table.Flowtables, m)
	}
	for _, c := range t.PutChains {
		if b.done {
			return
		}
		b.addChain(&c)
	}
	for _, s := range t.PutSets {
		if b.done {
			return
		}
		b.addSet(&s)
	}
}

// addChain adds a chain with the rules of which the text is known: an adopted one has only a fingerprint.
func (b *fragmentParts) addChain(c *desired.Chain) {
	m := chainMessage(c.Decl.Name, written(c.Source))
	b.fit(m)
	b.table.Chains = append(b.table.Chains, m)
	for _, r := range c.Rules {
		if r.Text == "" {
			continue
		}
		rule := &weftv1.Rule{Text: r.Text, Comment: r.Comment}
		if b.fit(rule) {
			m = &weftv1.Chain{Name: m.GetName()}
			b.table.Chains = append(b.table.Chains, m)
		}
		if b.done {
			return
		}
		m.Rules = append(m.Rules, rule)
	}
}

// addSet adds a set or map with its elements.
func (b *fragmentParts) addSet(s *desired.Set) {
	add := func(m *weftv1.Set) {
		if s.Decl.Map {
			b.table.Maps = append(b.table.Maps, m)
		} else {
			b.table.Sets = append(b.table.Sets, m)
		}
	}
	m := setMessage(written(s.Source), *s)
	b.fit(m)
	add(m)
	for element := range s.All() {
		e := elementMessage(s.Decl, &element, b.stated)
		if b.fit(e) {
			m = &weftv1.Set{Name: m.GetName()}
			add(m)
		}
		if b.done {
			return
		}
		m.Elements = append(m.Elements, e)
	}
}

// patchMessage returns a patch that does what an update does; stated is as in fragmentMessage.
func patchMessage(u *desired.Update, stated time.Time) *weftv1.Patch {
	p := &weftv1.Patch{Fragment: u.Fragment.Name}
	for i := range u.Tables {
		t := &u.Tables[i]
		put := fragmentMessage(&weftv1.Fragment{}, u.Tables[i:i+1], stated).GetTables()[0]
		m := &weftv1.TablePatch{
			Family: put.GetFamily(), Name: put.GetName(),
			DeleteChains: t.DeleteChains, DeleteSets: t.DeleteSets, DeleteFlowtables: t.DeleteFlowtables,
			PutChains: put.GetChains(), PutSets: put.GetSets(), PutMaps: put.GetMaps(), PutObjects: put.GetObjects(), PutFlowtables: put.GetFlowtables(),
		}
		for _, o := range t.DeleteObjects {
			m.DeleteObjects = append(m.DeleteObjects, &weftv1.ObjectReference{Kind: string(o.Kind), Name: o.Name})
		}
		for _, e := range t.Elements {
			m.Elements = append(m.Elements, elementsMessage(&e, stated))
		}
		p.Tables = append(p.Tables, m)
	}
	return p
}

func elementsMessage(e *desired.Elements, stated time.Time) *weftv1.ElementPatch {
	m := &weftv1.ElementPatch{Set: e.Set}
	for i := range e.Remove {
		m.Remove = append(m.Remove, e.Decl.FormatKey(e.Remove[i]))
	}
	for i := range e.Add {
		m.Add = append(m.Add, elementMessage(e.Decl, &e.Add[i], stated))
	}
	return m
}

// written returns a declaration as its publisher wrote it, which is empty for an
// adopted fragment.
func written[T any](source *T) (d T) {
	if source != nil {
		d = *source
	}
	return d
}

func chainMessage(name string, d nft.Chain) *weftv1.Chain {
	d.Name, d.Rules = name, nil
	return convert.Chain(d)
}

// setMessage is a declaration without elements.
func setMessage(d nft.Set, s desired.Set) *weftv1.Set {
	d.Name, d.Elements = s.Decl.Name, nil
	m := convert.Set(d)
	m.Role = roleOf(s)
	return m
}

// elementMessage converts an element of a set to a message; stated is as in fragmentMessage.
func elementMessage(d *set.Set, e *set.Element, stated time.Time) *weftv1.Element {
	m := convert.Element(nft.Element{
		Key: d.FormatKey(*e), Value: d.FormatData(*e), Comment: e.Comment, Timeout: e.Timeout, Expires: e.Expires(), Stateful: e.Stateful(),
	})
	if left := cmp.Or(e.Expires(), e.Timeout, d.Timeout); !stated.IsZero() && left != 0 {
		m.State = &weftv1.ElementState{ExpireTime: timestamppb.New(stated.Add(left)), Stateful: e.Stateful()}
	}
	return m
}

// flagsMessage returns the flags of a table.
func flagsMessage(dormant bool) []string {
	if dormant {
		return []string{"dormant"}
	}
	return nil
}

// roleOf returns the role of a map.
func roleOf(s desired.Set) weftv1.MapRole {
	switch {
	case s.Conntrack:
		return weftv1.MapRole_MAP_ROLE_CONNTRACK
	case s.Affinity:
		return weftv1.MapRole_MAP_ROLE_AFFINITY
	default:
		return weftv1.MapRole_MAP_ROLE_UNSPECIFIED
	}
}
