package publish

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/nft"
	nftset "github.com/weft-proxy/weft/nft/set"
)

// kept is the content of a fragment, as the session sends it again. It is a
// snapshot until the first patch is applied.
type kept struct {
	snapshot *weftv1.Fragment
	content  *content
}

var _ client.Content = (*kept)(nil)

// Fragment implements client.Content.
func (k *kept) Fragment() *weftv1.Fragment {
	if k.content != nil {
		return k.content.fragment(time.Now())
	}
	return k.snapshot
}

// Apply implements client.Content.
func (k *kept) Apply(p *weftv1.Patch) {
	var err error
	if k.snapshot != nil {
		k.content, err = newContent(k.snapshot)
		k.snapshot = nil
	}
	if err == nil && k.content != nil {
		err = k.content.patch(p)
	}
	if err != nil {
		// The content is not known any more.
		k.content = nil
	}
}

// Clone implements client.Content.
func (k *kept) Clone() client.Content {
	if k.content == nil {
		return &kept{snapshot: k.snapshot}
	}
	return &kept{content: k.content.clone()}
}

// content is what a fragment holds, in a form that patches can be applied to at
// the cost of the patch.
type content struct {
	// head is the fragment without its content.
	head   *weftv1.Fragment
	tables []*table
}

// table is a fragment's part in one table. Chains and sets keep their order.
type table struct {
	id nft.TableID
	// Table is everything but the sets and maps.
	*weftv1.Table
	sets []*set
}

// shallow returns a copy of the table that shares only what patches replace as a whole.
func (t *table) shallow() *weftv1.Table {
	return &weftv1.Table{
		Family: t.GetFamily(), Name: t.GetName(), Comment: t.GetComment(), Flags: slices.Clone(t.GetFlags()),
		Chains: slices.Clone(t.GetChains()), Objects: slices.Clone(t.GetObjects()), Flowtables: slices.Clone(t.GetFlowtables()),
	}
}

// set is a set or map with its elements by packed key: one key can be written
// in several ways.
type set struct {
	decl     *weftv1.Set
	isMap    bool
	compiled *nftset.Set
	elements map[string]element
}

// element is an element and when it leaves by itself; zero means never.
type element struct {
	*weftv1.Element
	expires time.Time
}

// newContent takes a fragment apart. The fragment is not changed, and shared.
// An error means that the aggregator would not take it either.
func newContent(f *weftv1.Fragment) (*content, error) {
	c := &content{head: client.Declaration(f)}
	c.head.Nft = ""
	tables := f.GetTables()
	if f.GetNft() != "" {
		var err error
		if tables, err = convert.File(f.GetNft()); err != nil {
			return nil, err
		}
	}
	for _, m := range tables {
		t, err := c.table(m.GetFamily(), m.GetName())
		if err != nil {
			return nil, err
		}
		t.Comment = cmp.Or(m.GetComment(), t.GetComment())
		for _, f := range m.GetFlags() {
			if !slices.Contains(t.Flags, f) {
				t.Flags = append(t.Flags, f)
			}
		}
		t.Chains = append(t.Chains, m.GetChains()...)
		t.Objects = append(t.Objects, m.GetObjects()...)
		t.Flowtables = append(t.Flowtables, m.GetFlowtables()...)
		if err := t.putSets(m.GetSets(), m.GetMaps(), true); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// table returns the fragment's part in a table, which it makes if need be.
func (c *content) table(family, name string) (*table, error) {
	f, err := nft.ParseFamily(family)
	if err != nil {
		return nil, err
	}
	id := nft.TableID{Family: f, Name: name}
	for _, t := range c.tables {
		if t.id == id {
			return t, nil
		}
	}
	t := &table{id: id, Table: &weftv1.Table{Family: f.String(), Name: name}}
	c.tables = append(c.tables, t)
	return t, nil
}

// clone returns a copy that can be changed.
func (c *content) clone() *content {
	d := &content{head: c.head, tables: make([]*table, 0, len(c.tables))}
	for _, t := range c.tables {
		u := &table{id: t.id, Table: t.shallow()}
		for _, s := range t.sets {
			u.sets = append(u.sets, &set{decl: s.decl, isMap: s.isMap, compiled: s.compiled, elements: maps.Clone(s.elements)})
		}
		d.tables = append(d.tables, u)
	}
	return d
}

// patch applies a patch that the aggregator has taken, or will be asked to: in
// each table deletions first, then declarations, then elements.
func (c *content) patch(p *weftv1.Patch) error {
	for _, m := range p.GetTables() {
		t, err := c.table(m.GetFamily(), m.GetName())
		if err != nil {
			return err
		}
		if err := t.patch(m); err != nil {
			return fmt.Errorf("table %s: %w", t.id, err)
		}
	}
	return nil
}

func (t *table) patch(m *weftv1.TablePatch) error {
	var objects []string
	for _, o := range m.GetDeleteObjects() {
		objects = append(objects, o.GetKind()+" "+o.GetName())
	}
	t.Objects = edit(t.Objects, objects, m.GetPutObjects(), func(o *weftv1.Object) string { return o.GetKind() + " " + o.GetName() })
	t.Flowtables = edit(t.Flowtables, m.GetDeleteFlowtables(), m.GetPutFlowtables(), (*weftv1.Flowtable).GetName)
	t.Chains = edit(t.Chains, m.GetDeleteChains(), m.GetPutChains(), (*weftv1.Chain).GetName)
	t.sets = edit(t.sets, m.GetDeleteSets(), nil, func(s *set) string { return s.decl.GetName() })
	if err := t.putSets(m.GetPutSets(), m.GetPutMaps(), false); err != nil {
		return err
	}
	for _, e := range m.GetElements() {
		s := t.set(e.GetSet())
		if s == nil {
			return fmt.Errorf("the fragment has no set or map %s", e.GetSet())
		}
		if err := s.change(e.GetRemove(), e.GetAdd()); err != nil {
			return err
		}
	}
	return nil
}

// edit deletes items by their names, and then puts items: in the place of the one of the
// same name, or at the end.
func edit[T any](list []T, deleted []string, put []T, name func(T) string) []T {
	list = slices.DeleteFunc(list, func(x T) bool { return slices.Contains(deleted, name(x)) })
	for _, x := range put {
		if i := slices.IndexFunc(list, func(y T) bool { return name(y) == name(x) }); i >= 0 {
			list[i] = x
		} else {
			list = append(list, x)
		}
	}
	return list
}

// set returns a set or map of the fragment, or nil.
func (t *table) set(name string) *set {
	i := slices.IndexFunc(t.sets, func(s *set) bool { return s.decl.GetName() == name })
	if i < 0 {
		return nil
	}
	return t.sets[i]
}

// putSets declares sets and maps with their elements. Those that exist are
// replaced, or where join is set get further elements.
func (t *table) putSets(sets, vmaps []*weftv1.Set, join bool) error {
	for i, m := range slices.Concat(sets, vmaps) {
		old := t.set(m.GetName())
		if old != nil && join {
			if err := old.change(nil, m.GetElements()); err != nil {
				return err
			}
			continue
		}
		s, err := newSet(t.id.Family, m, i >= len(sets))
		if err != nil {
			return err
		}
		if old != nil {
			*old = *s
		} else {
			t.sets = append(t.sets, s)
		}
	}
	return nil
}

func newSet(family nft.Family, m *weftv1.Set, isMap bool) (*set, error) {
	s := &set{decl: proto.CloneOf(m), isMap: isMap, elements: make(map[string]element, len(m.GetElements()))}
	s.decl.Elements = nil
	var err error
	s.compiled, err = convert.CompileSet(family, m, isMap)
	if err != nil {
		return nil, fmt.Errorf("declare %s: %w", m.GetName(), err)
	}
	return s, s.change(nil, m.GetElements())
}

// change removes and adds elements.
func (s *set) change(remove []string, add []*weftv1.Element) error {
	for _, key := range remove {
		id, err := s.identify(key)
		if err != nil {
			return err
		}
		delete(s.elements, id)
	}
	now := time.Now()
	for _, e := range add {
		id, err := s.identify(e.GetKey())
		if err != nil {
			return err
		}
		kept := element{Element: e}
		timeout := e.GetTimeout().AsDuration()
		if timeout == 0 {
			timeout = s.compiled.Timeout
		}
		if left := e.GetState().GetExpires().AsDuration(); left > 0 {
			timeout = left
		}
		if timeout > 0 {
			kept.expires = now.Add(timeout)
		}
		s.elements[id] = kept
	}
	return nil
}

// identify returns the key as the kernel stores it.
func (s *set) identify(key string) (string, error) {
	e, err := s.compiled.PackKey(key)
	if err != nil {
		return "", fmt.Errorf("element %s of %s: %w", key, s.decl.GetName(), err)
	}
	return e.Key + "\x00" + e.KeyEnd, nil
}

// fragment puts the content together again, without elements that have expired
// by now. It shares only what patches replace as a whole.
func (c *content) fragment(now time.Time) *weftv1.Fragment {
	f := proto.CloneOf(c.head)
	for _, t := range c.tables {
		m := t.shallow()
		for _, s := range t.sets {
			if s.isMap {
				m.Maps = append(m.Maps, s.message(now))
			} else {
				m.Sets = append(m.Sets, s.message(now))
			}
		}
		f.Tables = append(f.Tables, m)
	}
	return f
}

// message returns the set with its elements in the order of their keys.
func (s *set) message(now time.Time) *weftv1.Set {
	m := proto.CloneOf(s.decl)
	for _, id := range slices.Sorted(maps.Keys(s.elements)) {
		if e := s.elements[id]; e.expires.IsZero() || e.expires.After(now) {
			m.Elements = append(m.Elements, e.Element)
		}
	}
	return m
}
