package convert

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/json"
	"github.com/weft-proxy/weft/nft/set"
)

// File returns the tables of a .nft file, in text or nft's JSON.
//
// Possible errors: *ruleset.ErrorList, in which errors.As finds *syntax.Error.
func File(text string) ([]*weftv1.Table, error) {
	tables, err := json.ParseFile("", text)
	if err != nil {
		return nil, err
	}
	return each(tables, Table), nil
}

// Table converts a table with its content.
func Table(t nft.Table) *weftv1.Table {
	return &weftv1.Table{
		Family: t.Family.String(), Name: t.Name, Comment: t.Comment, Flags: t.Flags,
		Objects: each(t.Objects, Object), Flowtables: each(t.Flowtables, Flowtable), Chains: each(t.Chains, Chain),
		Sets: each(t.Sets, Set), Maps: each(t.Maps, func(m nft.Map) *weftv1.Set { return Set(nft.Set(m)) }),
	}
}

func each[T, M any](list []T, f func(T) M) []M {
	if len(list) == 0 {
		return nil
	}
	out := make([]M, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// TableOf is the inverse of Table.
//
// Possible errors: nft.ParseFamily's.
func TableOf(m *weftv1.Table) (nft.Table, error) {
	family, err := nft.ParseFamily(m.GetFamily())
	return nft.Table{
		Family: family, Name: m.GetName(), Comment: m.GetComment(), Flags: m.GetFlags(),
		Objects: each(m.GetObjects(), ObjectOf), Flowtables: each(m.GetFlowtables(), FlowtableOf), Chains: each(m.GetChains(), ChainOf),
		Sets: each(m.GetSets(), wholeSet), Maps: each(m.GetMaps(), func(m *weftv1.Set) nft.Map { return nft.Map(wholeSet(m)) }),
	}, err
}

// Object converts a named object.
func Object(o nft.Object) *weftv1.Object {
	return &weftv1.Object{Kind: string(o.Kind), Name: o.Name, Text: o.Text, Comment: o.Comment}
}

// ObjectOf is the inverse of Object.
func ObjectOf(m *weftv1.Object) nft.Object {
	return nft.Object{Kind: nft.ObjectKind(m.GetKind()), Name: m.GetName(), Text: m.GetText(), Comment: m.GetComment()}
}

// Flowtable converts a flowtable.
func Flowtable(f nft.Flowtable) *weftv1.Flowtable {
	return &weftv1.Flowtable{Name: f.Name, Hook: f.Hook, Priority: f.Priority, Devices: f.Devices, Flags: f.Flags, Counter: f.Counter}
}

// FlowtableOf is the inverse of Flowtable.
func FlowtableOf(m *weftv1.Flowtable) nft.Flowtable {
	return nft.Flowtable{
		Name: m.GetName(), Hook: m.GetHook(), Priority: m.GetPriority(), Devices: m.GetDevices(), Flags: m.GetFlags(), Counter: m.GetCounter(),
	}
}

// Chain converts a chain with its rules.
func Chain(c nft.Chain) *weftv1.Chain {
	return &weftv1.Chain{
		Name: c.Name, Type: c.Type, Hook: c.Hook, Priority: c.Priority,
		Policy: c.Policy, Device: c.Device, Devices: c.Devices, Flags: c.Flags, Comment: c.Comment,
		Rules: each(c.Rules, func(r nft.Rule) *weftv1.Rule { return &weftv1.Rule{Text: r.Text, Comment: r.Comment} }),
	}
}

// ChainOf is the inverse of Chain.
func ChainOf(m *weftv1.Chain) nft.Chain {
	return nft.Chain{
		Name: m.GetName(), Type: m.GetType(), Hook: m.GetHook(), Priority: m.GetPriority(),
		Policy: m.GetPolicy(), Device: m.GetDevice(), Devices: m.GetDevices(), Flags: m.GetFlags(), Comment: m.GetComment(),
		Rules: each(m.GetRules(), func(r *weftv1.Rule) nft.Rule { return nft.Rule{Text: r.GetText(), Comment: r.GetComment()} }),
	}
}

// Set converts a set with its elements.
func Set(s nft.Set) *weftv1.Set {
	return &weftv1.Set{
		Name: s.Name, Type: s.Type, Typeof: s.TypeOf, Flags: s.Flags,
		Timeout: Duration(s.Timeout), GcInterval: Duration(s.GCInterval), Size: s.Size,
		Policy: s.Policy, AutoMerge: s.AutoMerge, Stateful: s.Stateful, Comment: s.Comment, Elements: each(s.Elements, Element),
	}
}

// SetOf returns a declaration without elements, because there may be millions.
func SetOf(m *weftv1.Set) nft.Set {
	return nft.Set{
		Name: m.GetName(), Type: m.GetType(), TypeOf: m.GetTypeof(), Flags: m.GetFlags(),
		Timeout: m.GetTimeout().AsDuration(), GCInterval: m.GetGcInterval().AsDuration(), Size: m.GetSize(),
		Policy: m.GetPolicy(), AutoMerge: m.GetAutoMerge(), Stateful: m.GetStateful(), Comment: m.GetComment(),
	}
}

func wholeSet(m *weftv1.Set) nft.Set {
	s := SetOf(m)
	s.Elements = each(m.GetElements(), ElementOf)
	return s
}

// CompileSet compiles a declaration.
//
// Possible errors: package set's.
func CompileSet(family nft.Family, m *weftv1.Set, isMap bool) (*set.Set, error) {
	s := SetOf(m)
	if isMap {
		return set.CompileMap(family, (*nft.Map)(&s))
	}
	return set.Compile(family, &s)
}

// Element converts an element.
func Element(e nft.Element) *weftv1.Element {
	m := &weftv1.Element{Key: e.Key, Value: e.Value, Comment: e.Comment, Timeout: Duration(e.Timeout)}
	if e.Expires != 0 || len(e.Stateful) > 0 {
		m.State = &weftv1.ElementState{Expires: Duration(e.Expires), Stateful: e.Stateful}
	}
	return m
}

// ElementOf is the inverse of Element.
func ElementOf(m *weftv1.Element) nft.Element {
	e := nft.Element{Key: m.GetKey(), Value: m.GetValue(), Comment: m.GetComment(), Timeout: m.GetTimeout().AsDuration()}
	if s := m.GetState(); s != nil {
		e.Expires, e.Stateful = s.GetExpires().AsDuration(), s.GetStateful()
	}
	return e
}

// Unpack returns packed elements as text. Without data it returns only keys.
//
// Possible errors: package set's.
func Unpack(d *set.Set, packed []*weftv1.PackedElements, data bool) ([]*weftv1.Element, error) {
	out := make([]*weftv1.Element, 0, weftv1.CountPacked(packed))
	for _, p := range packed {
		elements, err := set.UnpackKeys(d, int(p.GetCount()), p.GetKeys())
		if data {
			elements, err = d.Unpack(int(p.GetCount()), p.GetKeys(), p.GetValues())
		}
		if err != nil {
			return nil, err
		}
		for _, e := range elements {
			out = append(out, &weftv1.Element{Key: d.FormatKey(e), Value: d.FormatData(e)})
		}
	}
	return out, nil
}

// Duration returns nil for 0.
func Duration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
