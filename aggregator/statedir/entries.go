package statedir

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// headKey and sumKey are the keys of a fragment's bucket that are not those of a
// table.
const (
	headKey = "head"
	sumKey  = "sum"
)

// Names of tables and of what they declare have no spaces, so that a space
// separates the parts of a key. It sorts before all characters of names: the
// entries of a table follow it, and the elements of a set follow the set.
func entryKey(parts ...string) string { return strings.Join(parts, " ") }

// entry is a key of a fragment's bucket with its value: a weft.v1.Element, or
// a part of a weft.v1.Fragment or weft.v1.Table.
type entry struct {
	key   string
	value proto.Message
}

// fragmentEntries returns the entries of a fragment in the order of their keys.
func fragmentEntries(f *weftv1.Fragment) []entry {
	var all []entry
	for _, t := range f.GetTables() {
		table := entryKey(t.GetFamily(), t.GetName())
		all = append(all, entry{table, tableHead(t)})
		all = append(all, tableEntries(table, t)...)
	}
	all = append(all, entry{headKey, copyWithout(f, "tables")})
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	return all
}

// tableHead is what a table has beside what it declares. Its key has its name.
func tableHead(t *weftv1.Table) *weftv1.Table {
	return &weftv1.Table{Comment: t.GetComment(), Flags: t.GetFlags()}
}

// copyWithout returns a message without one field. The other fields are shared.
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

// tableEntries returns the entries of what a table declares.
func tableEntries(table string, t *weftv1.Table) []entry {
	var all []entry
	for _, c := range t.GetChains() {
		all = append(all, entry{entryKey(table, "chain", c.GetName()), &weftv1.Table{Chains: []*weftv1.Chain{c}}})
	}
	for _, o := range t.GetObjects() {
		all = append(all, entry{entryKey(table, "object", o.GetKind(), o.GetName()), &weftv1.Table{Objects: []*weftv1.Object{o}}})
	}
	for _, ft := range t.GetFlowtables() {
		all = append(all, entry{entryKey(table, "flowtable", ft.GetName()), &weftv1.Table{Flowtables: []*weftv1.Flowtable{ft}}})
	}
	for _, s := range t.GetSets() {
		all = append(all, setEntries(table, s, &weftv1.Table{Sets: []*weftv1.Set{copyWithout(s, "elements")}})...)
	}
	for _, m := range t.GetMaps() {
		all = append(all, setEntries(table, m, &weftv1.Table{Maps: []*weftv1.Set{copyWithout(m, "elements")}})...)
	}
	return all
}

// setEntries returns the entries of a set or map; part has its declaration.
func setEntries(table string, s *weftv1.Set, part *weftv1.Table) []entry {
	key := entryKey(table, "set", s.GetName())
	all := make([]entry, 0, 1+len(s.GetElements()))
	all = append(all, entry{key, part})
	for _, e := range s.GetElements() {
		all = append(all, entry{entryKey(key, e.GetKey()), e})
	}
	return all
}

// assembler makes a fragment of its entries, in the order of their keys.
type assembler struct {
	fragment *weftv1.Fragment
	table    *weftv1.Table
	set      *weftv1.Set
}

// add adds an entry.
func (a *assembler) add(key string, value []byte) error {
	merge := proto.UnmarshalOptions{Merge: true}
	if key == headKey {
		return merge.Unmarshal(value, a.fragment)
	}
	parts := strings.SplitN(key, " ", 5)
	if len(parts) < 2 {
		return fmt.Errorf("unknown key %q", key)
	}
	if a.table == nil || a.table.GetFamily() != parts[0] || a.table.GetName() != parts[1] {
		a.table, a.set = &weftv1.Table{Family: parts[0], Name: parts[1]}, nil
		a.fragment.Tables = append(a.fragment.Tables, a.table)
	}
	if len(parts) == 5 && parts[2] == "set" {
		if a.set == nil || a.set.GetName() != parts[3] {
			return fmt.Errorf("key %q has no set", key)
		}
		e := &weftv1.Element{}
		a.set.Elements = append(a.set.Elements, e)
		return proto.Unmarshal(value, e)
	}
	if err := merge.Unmarshal(value, a.table); err != nil {
		return err
	}
	a.set = a.declaredSet(parts)
	return nil
}

// declaredSet returns the set or map that was added last, if a key is one's.
func (a *assembler) declaredSet(parts []string) *weftv1.Set {
	if len(parts) != 4 || parts[2] != "set" {
		return nil
	}
	for _, list := range [][]*weftv1.Set{a.table.GetSets(), a.table.GetMaps()} {
		if n := len(list); n > 0 && list[n-1].GetName() == parts[3] {
			return list[n-1]
		}
	}
	return nil
}
