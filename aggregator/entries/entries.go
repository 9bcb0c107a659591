package entries

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Head is the key of the entry without tables.
const Head = "head"

// Key joins the parts with a space, which cannot occur in names and sorts before all their characters: the
// elements of a set follow the set.
func Key(parts ...string) string { return strings.Join(parts, " ") }

// Entry is a part of a fragment.
type Entry struct {
	Key   string
	Value proto.Message
}

// Of returns the entries of a fragment in the order of their keys.
func Of(f *weftv1.Fragment) []Entry {
	var all []Entry
	for _, t := range f.GetTables() {
		table := Key(t.GetFamily(), t.GetName())
		// The key has the table's name.
		all = append(all, Entry{table, &weftv1.Table{Comment: t.GetComment(), Flags: t.GetFlags()}})
		all = append(all, tableEntries(table, t)...)
	}
	all = append(all, Entry{Head, copyWithout(f, "tables")})
	slices.SortStableFunc(all, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

func copyWithout[M proto.Message](m M, field protoreflect.Name) M {
	c := m.ProtoReflect().New()
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Name() != field {
			c.Set(f, v)
		}
		return true
	})
	return c.Interface().(M)
}

func tableEntries(table string, t *weftv1.Table) []Entry {
	var all []Entry
	for _, c := range t.GetChains() {
		all = append(all, Entry{Key(table, "chain", c.GetName()), &weftv1.Table{Chains: []*weftv1.Chain{c}}})
	}
	for _, o := range t.GetObjects() {
		all = append(all, Entry{Key(table, "object", o.GetKind(), o.GetName()), &weftv1.Table{Objects: []*weftv1.Object{o}}})
	}
	for _, ft := range t.GetFlowtables() {
		all = append(all, Entry{Key(table, "flowtable", ft.GetName()), &weftv1.Table{Flowtables: []*weftv1.Flowtable{ft}}})
	}
	for _, s := range t.GetSets() {
		all = append(all, setEntries(table, s, &weftv1.Table{Sets: []*weftv1.Set{copyWithout(s, "elements")}})...)
	}
	for _, m := range t.GetMaps() {
		all = append(all, setEntries(table, m, &weftv1.Table{Maps: []*weftv1.Set{copyWithout(m, "elements")}})...)
	}
	return all
}

func setEntries(table string, s *weftv1.Set, part *weftv1.Table) []Entry {
	key := Key(table, "set", s.GetName())
	all := make([]Entry, 0, 1+len(s.GetElements()))
	all = append(all, Entry{key, part})
	for _, e := range s.GetElements() {
		all = append(all, Entry{Key(key, e.GetKey()), e})
	}
	return all
}

// Add adds an entry to a fragment, in the order of the keys.
func Add(f *weftv1.Fragment, key string, value []byte) error {
	merge := proto.UnmarshalOptions{Merge: true}
	if key == Head {
		return merge.Unmarshal(value, f)
	}
	parts := strings.SplitN(key, " ", 5)
	if len(parts) < 2 {
		return fmt.Errorf("unknown key %q", key)
	}
	table := last(f.GetTables())
	if table == nil || table.GetFamily() != parts[0] || table.GetName() != parts[1] {
		table = &weftv1.Table{Family: parts[0], Name: parts[1]}
		f.Tables = append(f.Tables, table)
	}
	if len(parts) < 5 || parts[2] != "set" {
		return merge.Unmarshal(value, table)
	}
	set := last(table.GetSets())
	if set.GetName() != parts[3] {
		set = last(table.GetMaps())
	}
	if set == nil || set.GetName() != parts[3] {
		return fmt.Errorf("key %q has no set", key)
	}
	e := &weftv1.Element{}
	set.Elements = append(set.Elements, e)
	return proto.Unmarshal(value, e)
}

func last[M any](list []*M) *M {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}
