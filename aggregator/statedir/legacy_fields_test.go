package statedir

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// TestConvertFields reads a fragment as it was written before maps had roles and
// before timeouts were durations.
func TestConvertFields(t *testing.T) {
	text := func(m proto.Message, n protowire.Number, values ...string) {
		b := m.ProtoReflect().GetUnknown()
		for _, v := range values {
			b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
		}
		m.ProtoReflect().SetUnknown(b)
	}
	number := func(m proto.Message, n protowire.Number, v uint64) {
		m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v))
	}
	old := &weftv1.Element{Key: "a", State: &weftv1.ElementState{}}
	number(old, legacyTimeout, 1500)
	number(old.State, legacyExpires, 700)
	table := &weftv1.Table{Family: "ip", Name: "t", Sets: []*weftv1.Set{{Name: "s", Elements: []*weftv1.Element{old, {Key: "b"}}}}, Maps: []*weftv1.Set{
		{Name: "flows"}, {Name: "sticky"}, {Name: "plain"},
	}}
	text(table, legacyConntrackMaps, "flows")
	text(table, legacyAffinityMaps, "sticky", "gone")
	b, err := proto.Marshal(&weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{table}})
	if err != nil {
		t.Fatal(err)
	}
	got := &weftv1.Fragment{}
	if err := proto.Unmarshal(b, got); err != nil {
		t.Fatal(err)
	}
	convertFields(got)
	want := &weftv1.Fragment{Name: "f", Tables: []*weftv1.Table{{
		Family: "ip", Name: "t",
		Sets: []*weftv1.Set{{Name: "s", Elements: []*weftv1.Element{
			{Key: "a", Timeout: durationpb.New(1500 * time.Millisecond), State: &weftv1.ElementState{Expires: durationpb.New(700 * time.Millisecond)}}, {Key: "b"},
		}}},
		Maps: []*weftv1.Set{
			{Name: "flows", Role: weftv1.MapRole_MAP_ROLE_CONNTRACK}, {Name: "sticky", Role: weftv1.MapRole_MAP_ROLE_AFFINITY}, {Name: "plain"},
		},
	}}}
	if !proto.Equal(got, want) {
		t.Errorf("converted to %v, want %v", got, want)
	}
}
