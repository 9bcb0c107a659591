package weftv1_test

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
)

// each calls f with a message and with those in it, at any depth. It fills every field
// that has a message.
// Of the fields of a oneof, it calls f for one.
func each(m protoreflect.Message, choice int, f func(protoreflect.Message)) {
	f(m)
	for i := range m.Descriptor().Fields().Len() {
		field := m.Descriptor().Fields().Get(i)
		switch {
		case field.Message() == nil:
		case field.ContainingOneof() != nil && field.ContainingOneof().Fields().Get(choice) != field:
		case field.IsList():
			each(m.Mutable(field).List().AppendMutable().Message(), choice, f)
		default:
			each(m.Mutable(field).Message(), choice, f)
		}
	}
}

// TestUnknownField puts an unknown field into each message of a fragment and of a
// patch.
func TestUnknownField(t *testing.T) {
	for _, empty := range []interface {
		proto.Message
		UnknownField() *weftv1.UnknownField
	}{&weftv1.Fragment{}, &weftv1.Patch{}} {
		total := 0
		each(empty.ProtoReflect().New(), 0, func(protoreflect.Message) { total++ })
		if total < 10 {
			t.Errorf("%T has %d messages", empty, total)
		}
		for i := range 2 * total {
			m := empty.ProtoReflect().New().Interface().(interface { //nolint:forcetypeassert // New returns the type of its receiver
				proto.Message
				UnknownField() *weftv1.UnknownField
			})
			n, name := 0, protoreflect.FullName("")
			each(m.ProtoReflect(), i/total, func(in protoreflect.Message) {
				if n == i%total {
					name = in.Descriptor().FullName()
					in.SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 517, protowire.VarintType), 1))
				}
				n++
			})
			if got := m.UnknownField(); got == nil || got.Number != 517 {
				t.Errorf("%T with an unknown field in its %s: found %v", empty, name, got)
			}
		}
		if got := empty.UnknownField(); got != nil {
			t.Errorf("%T without an unknown field: found %v", empty, got)
		}
	}
}

// TestUnknownFieldName finds an unknown field in each kind of object of a patch.
func TestUnknownFieldName(t *testing.T) {
	chain, rule := &weftv1.Chain{Name: "c"}, &weftv1.Rule{}
	set, add := &weftv1.ElementPatch{Set: "s"}, &weftv1.Element{Key: "k"}
	vmap, element := &weftv1.Set{Name: "m"}, &weftv1.Element{Key: "k"}
	counter, quota := &weftv1.Object{Kind: "counter", Name: "o"}, &weftv1.ObjectReference{Kind: "quota", Name: "q"}
	flowtable := &weftv1.Flowtable{Name: "f"}
	chain.Rules, set.Add, vmap.Elements = []*weftv1.Rule{{}, rule}, []*weftv1.Element{add}, []*weftv1.Element{element}
	table := &weftv1.TablePatch{
		Family: "ip", Name: "t", PutChains: []*weftv1.Chain{chain}, PutMaps: []*weftv1.Set{vmap}, Elements: []*weftv1.ElementPatch{set},
		PutObjects: []*weftv1.Object{counter}, DeleteObjects: []*weftv1.ObjectReference{quota}, PutFlowtables: []*weftv1.Flowtable{flowtable},
	}
	for _, tt := range []struct {
		in   proto.Message
		want string
	}{
		{table, "table ip t"},
		{chain, "chain ip t c"},
		{rule, "rule ip t c #2"},
		{set, "set ip t s"},
		{add, "element ip t s { k }"},
		{vmap, "map ip t m"},
		{element, "element ip t m { k }"},
		{counter, "counter ip t o"},
		{quota, "quota ip t q"},
		{flowtable, "flowtable ip t f"},
	} {
		tt.in.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 517, protowire.VarintType), 1))
		if got := (&weftv1.Patch{Tables: []*weftv1.TablePatch{table}}).UnknownField(); got == nil || got.Object.Text() != tt.want {
			t.Errorf("found %v: want %s", got, tt.want)
		}
		tt.in.ProtoReflect().SetUnknown(nil)
	}
}

func TestObjectNameText(t *testing.T) {
	for _, text := range []string{
		"", "table ip weft", "chain ip weft input", "rule ip weft input handle 7", "rule inet weft input #3",
		"element ip weft blocked { 10.0.0.1 . tcp }", "ct helper ip weft ftp", "flowtable ip weft fast",
	} {
		if got := nametest.Parse(text).Text(); got != text {
			t.Errorf("%q is printed as %q", text, got)
		}
	}
}
