package entries_test

import (
	"slices"
	"testing"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/entries"
)

// TestOf names every entry of a fragment, in order.
func TestOf(t *testing.T) {
	f := &weftv1.Fragment{Name: "f", Priority: 3, Tables: []*weftv1.Table{{
		Family: "ip", Name: "t", Comment: "c",
		Chains:     []*weftv1.Chain{{Name: "in"}},
		Objects:    []*weftv1.Object{{Kind: "counter", Name: "hits"}},
		Flowtables: []*weftv1.Flowtable{{Name: "ft"}},
		Sets:       []*weftv1.Set{{Name: "s", Type: "ipv4_addr", Elements: []*weftv1.Element{{Key: "10.0.0.2"}, {Key: "10.0.0.1"}}}},
		Maps:       []*weftv1.Set{{Name: "m", Type: "ipv4_addr : verdict", Elements: []*weftv1.Element{{Key: "10.0.0.1", Value: "drop"}}}},
	}}}
	var got []string
	for _, e := range entries.Of(f) {
		got = append(got, e.Key)
	}
	want := []string{
		"head", "ip t", "ip t chain in", "ip t flowtable ft", "ip t object counter hits",
		"ip t set m", "ip t set m 10.0.0.1", "ip t set s", "ip t set s 10.0.0.1", "ip t set s 10.0.0.2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("entries %q, want %q", got, want)
	}
	if head, ok := entries.Of(f)[0].Value.(*weftv1.Fragment); !ok || head.GetPriority() != 3 || len(head.GetTables()) != 0 {
		t.Errorf("the head is %v", head)
	}
}
