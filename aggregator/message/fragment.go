package message

import (
	"cmp"
	"iter"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// Fragment adds the content of table updates to head. If stated, the time of the update, is not zero, timed
// elements get their expiration time.
func Fragment(head *weftv1.Fragment, tables []desired.TableUpdate, stated time.Time) *weftv1.Fragment {
	for f := range FragmentParts(head, tables, stated, math.MaxInt) {
		return f
	}
	return head
}

// FragmentParts is Fragment in messages of about limit bytes. The first one is head.
func FragmentParts(head *weftv1.Fragment, tables []desired.TableUpdate, stated time.Time, limit int) iter.Seq[*weftv1.Fragment] {
	return func(yield func(*weftv1.Fragment) bool) {
		b := fragmentParts{parts: parts[*weftv1.Fragment]{limit: limit, yield: yield, part: head}, stated: stated}
		b.next = b.nextPart
		for i := range tables {
			b.addTable(&tables[i])
		}
		b.send()
	}
}

type fragmentParts struct {
	parts[*weftv1.Fragment]
	table *weftv1.Table
	// stated is as in Fragment.
	stated time.Time
}

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

// addChain leaves out adopted rules, because their text is unknown.
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

// Patch returns the patch equivalent to an update; stated is as in Fragment.
func Patch(u *desired.Update, stated time.Time) *weftv1.Patch {
	p := &weftv1.Patch{Fragment: u.Fragment.Name}
	for i := range u.Tables {
		t := &u.Tables[i]
		put := Fragment(&weftv1.Fragment{}, u.Tables[i:i+1], stated).GetTables()[0]
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

// written returns the declaration as published, empty for an adopted fragment.
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

func setMessage(d nft.Set, s desired.Set) *weftv1.Set {
	d.Name, d.Elements = s.Decl.Name, nil
	m := convert.Set(d)
	m.Role = roleOf(s)
	return m
}

func elementMessage(d *set.Set, e *set.Element, stated time.Time) *weftv1.Element {
	m := convert.Element(nft.Element{
		Key: d.FormatKey(*e), Value: d.FormatData(*e), Comment: e.Comment, Timeout: e.Timeout, Expires: e.Expires(), Stateful: e.Stateful(),
	})
	if left := cmp.Or(e.Expires(), e.Timeout, d.Timeout); !stated.IsZero() && left != 0 {
		m.State = &weftv1.ElementState{ExpireTime: timestamppb.New(stated.Add(left)), Stateful: e.Stateful()}
	}
	return m
}

func flagsMessage(dormant bool) []string {
	if dormant {
		return []string{"dormant"}
	}
	return nil
}

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
