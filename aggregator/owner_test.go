package aggregator_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/aggregatortest"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func TestOwner(t *testing.T) {
	k := &aggregatortest.Kernel{}
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: k}})
	applyAs(t, d, "b", ports("p", 5, "80 : accept", "443 : drop"))
	applyAs(t, d, "a", ports("p", 9, "80 : drop"))
	two := ruled("rules", "tcp dport 1 accept", "tcp dport 2 accept")
	two.Tables[0].Chains[0].Rules[1].Comment = "second"
	applyAs(t, d, "c", two)
	handles := k.Handles(demo, "input")
	all := func(text string) []*weftv1.OwnedBy {
		return []*weftv1.OwnedBy{
			{Publisher: "c", Fragment: "rules", Text: text}, {Publisher: "b", Fragment: "p", Priority: 5, Text: text}, {Publisher: "a", Fragment: "p", Priority: 9, Text: text},
		}
	}
	for _, tt := range []struct {
		name string
		req  *weftv1.OwnerRequest
		want []*weftv1.OwnedBy
	}{
		{"table", &weftv1.OwnerRequest{Table: "demo"}, all("table ip demo")},
		{"chain", &weftv1.OwnerRequest{Family: "ip", Table: "demo", Chain: "input"}, all("chain ip demo input { type filter hook input priority 0; policy accept; }")},
		{"rule", &weftv1.OwnerRequest{Family: "ip", Table: "demo", Chain: "input", Handle: handles[1]}, []*weftv1.OwnedBy{
			{Publisher: "c", Fragment: "rules", Text: `tcp dport 2 accept comment "second"`, Index: 2},
		}},
		{"map", &weftv1.OwnerRequest{Family: "ip", Table: "demo", Set: "ports"}, []*weftv1.OwnedBy{
			{Publisher: "b", Fragment: "p", Priority: 5, Text: "map ip demo ports { type inet_service : verdict; }"},
			{Publisher: "a", Fragment: "p", Priority: 9, Text: "map ip demo ports { type inet_service : verdict; }"},
		}},
		{"element", &weftv1.OwnerRequest{Family: "ip", Table: "demo", Set: "ports", Key: "80"}, []*weftv1.OwnedBy{
			{Publisher: "b", Fragment: "p", Priority: 5, Text: "80 : accept"}, {Publisher: "a", Fragment: "p", Priority: 9, Text: "80 : drop"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := d.Aggregator.Owner(aggregatortest.Context(t), tt.req)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.GetOwners(), protocmp.Transform()); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
	for name, tt := range map[string]struct {
		req  *weftv1.OwnerRequest
		want error
	}{
		"no table":     {&weftv1.OwnerRequest{Table: "none"}, aggregator.ErrNoObject},
		"no chain":     {&weftv1.OwnerRequest{Table: "demo", Chain: "none"}, aggregator.ErrNoObject},
		"no rule":      {&weftv1.OwnerRequest{Table: "demo", Chain: "input", Handle: 999}, aggregator.ErrNoObject},
		"no set":       {&weftv1.OwnerRequest{Table: "demo", Set: "none", Key: "80"}, aggregator.ErrNoObject},
		"no element":   {&weftv1.OwnerRequest{Table: "demo", Set: "ports", Key: "81"}, aggregator.ErrNoObject},
		"bad key":      {&weftv1.OwnerRequest{Table: "demo", Set: "ports", Key: "eighty"}, aggregator.ErrInvalidName},
		"bad family":   {&weftv1.OwnerRequest{Family: "ipx", Table: "demo"}, aggregator.ErrInvalidName},
		"nothing":      {&weftv1.OwnerRequest{}, aggregator.ErrProtocol},
		"two objects":  {&weftv1.OwnerRequest{Table: "demo", Chain: "input", Set: "ports"}, aggregator.ErrProtocol},
		"lone handle":  {&weftv1.OwnerRequest{Table: "demo", Handle: 1}, aggregator.ErrProtocol},
		"lone element": {&weftv1.OwnerRequest{Table: "demo", Key: "80"}, aggregator.ErrProtocol},
	} {
		if _, err := d.Aggregator.Owner(aggregatortest.Context(t), tt.req); !errors.Is(err, tt.want) {
			t.Errorf("%s: error is %v: want %v", name, err, tt.want)
		}
	}
}

// TestShadowedOfOthers has one fragment's update change what another's status
// says.
func TestShadowedOfOthers(t *testing.T) {
	d := aggregatortest.Start(t, aggregatortest.Config{Config: aggregator.Config{Kernel: &aggregatortest.Kernel{}}})
	shadowed := func() []uint64 {
		var n []uint64
		fragments, _ := d.Aggregator.List()
		for _, f := range fragments {
			n = append(n, f.GetShadowed())
		}
		return n
	}
	applyAs(t, d, "low", ports("p", 9, "80 : drop", "443 : drop"))
	applyAs(t, d, "top", ports("p", 1, "80 : accept", "443 : accept"))
	if diff := cmp.Diff([]uint64{2, 0}, shadowed()); diff != "" {
		t.Errorf("shadowed elements (-want +got):\n%s", diff)
	}
	applyAs(t, d, "top", ports("p", 1, "80 : accept"))
	if diff := cmp.Diff([]uint64{1, 0}, shadowed()); diff != "" {
		t.Errorf("shadowed elements once one has gone (-want +got):\n%s", diff)
	}
}
