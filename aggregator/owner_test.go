package aggregator_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
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
	all := func(text string) []*weftv1.ObjectOwner {
		return []*weftv1.ObjectOwner{
			{Fragment: &weftv1.FragmentName{Publisher: "c", Name: "rules"}, Text: text}, {Fragment: &weftv1.FragmentName{Publisher: "b", Name: "p"}, Priority: 5, Text: text}, {Fragment: &weftv1.FragmentName{Publisher: "a", Name: "p"}, Priority: 9, Text: text},
		}
	}
	for _, tt := range []struct {
		name string
		req  *weftv1.OwnerRequest
		want []*weftv1.ObjectOwner
	}{
		{"table", &weftv1.OwnerRequest{Object: nametest.Parse("table ip demo")}, all("table ip demo")},
		{"chain", &weftv1.OwnerRequest{Object: nametest.Parse("chain ip demo input")}, all("chain ip demo input { type filter hook input priority 0; policy accept; }")},
		{"rule", &weftv1.OwnerRequest{Object: nametest.Parse(fmt.Sprintf("rule ip demo input handle %d", handles[1]))}, []*weftv1.ObjectOwner{
			{Fragment: &weftv1.FragmentName{Publisher: "c", Name: "rules"}, Text: `tcp dport 2 accept comment "second"`, Index: 2},
		}},
		{"map", &weftv1.OwnerRequest{Object: nametest.Parse("map ip demo ports")}, []*weftv1.ObjectOwner{
			{Fragment: &weftv1.FragmentName{Publisher: "b", Name: "p"}, Priority: 5, Text: "map ip demo ports { type inet_service : verdict; }"},
			{Fragment: &weftv1.FragmentName{Publisher: "a", Name: "p"}, Priority: 9, Text: "map ip demo ports { type inet_service : verdict; }"},
		}},
		{"element", &weftv1.OwnerRequest{Object: nametest.Parse("element ip demo ports { 80 }")}, []*weftv1.ObjectOwner{
			{Fragment: &weftv1.FragmentName{Publisher: "b", Name: "p"}, Priority: 5, Text: "80 : accept"}, {Fragment: &weftv1.FragmentName{Publisher: "a", Name: "p"}, Priority: 9, Text: "80 : drop"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := d.Aggregator.Owner(aggregatortest.Context(t), tt.req, aggregator.Reader{All: true})
			must(t, err)
			if diff := cmp.Diff(tt.want, got.GetOwners(), protocmp.Transform()); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
	for name, tt := range map[string]struct {
		object string
		want   error
	}{
		"no table":     {"table ip none", aggregator.ErrNoObject},
		"no chain":     {"chain ip demo none", aggregator.ErrNoObject},
		"no rule":      {"rule ip demo input handle 999", aggregator.ErrNoObject},
		"no set":       {"element ip demo none { 80 }", aggregator.ErrNoObject},
		"no element":   {"element ip demo ports { 81 }", aggregator.ErrNoObject},
		"no kind":      {"carrot ip demo ports", aggregator.ErrNoObject},
		"bad key":      {"element ip demo ports { eighty }", aggregator.ErrInvalidName},
		"bad family":   {"table ipx demo", aggregator.ErrInvalidName},
		"nothing":      {"", aggregator.ErrProtocol},
		"lone handle":  {"rule ip demo", aggregator.ErrProtocol},
		"no handle":    {"rule ip demo input", aggregator.ErrProtocol},
		"lone element": {"element ip demo", aggregator.ErrProtocol},
		"named table":  {"table ip demo input", aggregator.ErrProtocol},
	} {
		req := &weftv1.OwnerRequest{Object: nametest.Parse(tt.object)}
		if _, err := d.Aggregator.Owner(aggregatortest.Context(t), req, aggregator.Reader{All: true}); !errors.Is(err, tt.want) {
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
