package weftv1_test

import (
	"os"
	"regexp"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// TestJoinFragment joins parts that go on with the table, chain, set and map before.
func TestJoinFragment(t *testing.T) {
	rules := func(texts ...string) (out []*weftv1.Rule) {
		for _, text := range texts {
			out = append(out, &weftv1.Rule{Text: text})
		}
		return out
	}
	elements := func(keys ...string) (out []*weftv1.Element) {
		for _, key := range keys {
			out = append(out, &weftv1.Element{Key: key})
		}
		return out
	}
	parts := []*weftv1.Table{
		{Family: "ip", Name: "a", Chains: []*weftv1.Chain{{Name: "c", Rules: rules("1")}}, Sets: []*weftv1.Set{{Name: "s", Elements: elements("1")}}},
		{Family: "ip", Name: "a", Chains: []*weftv1.Chain{{Name: "c", Rules: rules("2")}, {Name: "d"}}, Sets: []*weftv1.Set{{Name: "s", Elements: elements("2")}}},
		{Family: "ip", Name: "a", Maps: []*weftv1.Set{{Name: "m"}}, Objects: []*weftv1.Object{{Name: "o"}}},
		{Family: "ip6", Name: "a", Maps: []*weftv1.Set{{Name: "m"}}},
	}
	got := &weftv1.GetFragmentResponse{}
	for _, part := range parts {
		got.Join(&weftv1.GetFragmentResponse{Fragment: &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{part}}})
	}
	want := &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{
		{
			Family: "ip", Name: "a", Chains: []*weftv1.Chain{{Name: "c", Rules: rules("1", "2")}, {Name: "d"}},
			Sets: []*weftv1.Set{{Name: "s", Elements: elements("1", "2")}}, Maps: []*weftv1.Set{{Name: "m"}}, Objects: []*weftv1.Object{{Name: "o"}},
		},
		{Family: "ip6", Name: "a", Maps: []*weftv1.Set{{Name: "m"}}},
	}}
	if !proto.Equal(got.GetFragment(), want) {
		t.Errorf("got %v\nwant %v", got.GetFragment(), want)
	}
}

// TestJoinTable joins parts that go on with the chain and set before.
func TestJoinTable(t *testing.T) {
	got := &weftv1.GetTableResponse{}
	for i, set := range []string{"s", "s", "t"} {
		got.Join(&weftv1.GetTableResponse{
			Revision: uint64(7 * (1 - min(i, 1))), //nolint:gosec // 7 or 0
			Chains:   []*weftv1.MergedChain{{Chain: &weftv1.Chain{Name: "c"}, Rules: []*weftv1.MergedRule{{Handle: uint64(i)}}}},
			Sets:     []*weftv1.MergedSet{{Set: &weftv1.Set{Name: set, Elements: []*weftv1.Element{{Key: set}}}, Added: []*weftv1.Element{{Key: "+"}}}},
		})
	}
	if len(got.GetChains()) != 1 || len(got.GetChains()[0].GetRules()) != 3 || got.GetRevision() != 7 {
		t.Errorf("chains %v of revision %d", got.GetChains(), got.GetRevision())
	}
	if s := got.GetSets(); len(s) != 2 || len(s[0].GetSet().GetElements()) != 2 || len(s[0].GetAdded()) != 2 || len(s[1].GetAdded()) != 1 {
		t.Errorf("sets %v", s)
	}
}

// TestPackets reads what counters have counted, and nothing else.
func TestPackets(t *testing.T) {
	for text, want := range map[string]uint64{
		"packets 3 bytes 180": 3, "counter packets 18446744073709551615 bytes 0": 1<<64 - 1, "counter packets 4": 4,
		"": 0, "counter": 0, "over 25 mbytes": 0, "quota 25 mbytes used 3 bytes": 0, "packets x bytes 1": 0, "packets -1 bytes 1": 0,
	} {
		if got := weftv1.Packets(text); got != want {
			t.Errorf("%q has %d packets, want %d", text, got, want)
		}
	}
	if got := (&weftv1.ElementState{Stateful: []string{"quota 25 mbytes", "counter packets 3 bytes 180"}}).Packets(); got != 3 {
		t.Errorf("the element has %d packets, want 3", got)
	}
}

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

// words returns the identifiers in the code spans of PROTOCOL.md, and each part of an
// identifier with dots.
func words(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	// Blocks of code are examples, not explanations.
	text = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAll(text, nil)
	out := make(map[string]bool)
	for _, span := range regexp.MustCompile("`[^`\n]+`").FindAll(text, -1) {
		for _, word := range regexp.MustCompile(`\w+`).FindAll(span, -1) {
			out[string(word)] = true
		}
	}
	return out
}

// TestProtocolNamesCalls walks the descriptors of weft.proto: PROTOCOL.md names each call, and each reason of a
// rejection, because a client must handle it.
func TestProtocolNamesCalls(t *testing.T) {
	named := words(t)
	n := 0
	check := func(d protoreflect.Descriptor) {
		n++
		if !named[string(d.Name())] {
			t.Errorf("PROTOCOL.md does not name %s", d.FullName())
		}
	}
	services := weftv1.File_weft_proto.Services()
	for i := range services.Len() {
		check(services.Get(i))
		for j := range services.Get(i).Methods().Len() {
			check(services.Get(i).Methods().Get(j))
		}
	}
	reasons := weftv1.Violation_REASON_UNSPECIFIED.Descriptor().Values()
	for i := range reasons.Len() {
		check(reasons.Get(i))
	}
	if n < 30 {
		t.Errorf("only %d names were checked", n)
	}
}
