package weftv1_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

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
