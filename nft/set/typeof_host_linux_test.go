package set

import (
	"reflect"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestHostTypeOfAsNft compares the kernel's view of sets and maps that nft
// declares with typeof, for selectors that ask the host and for all keys of
// meta and ct, with what we make of the same declaration. It then reads it
// back from the dump.
func TestHostTypeOfAsNft(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	interval := []string{"interval"}
	sets := []nft.Set{
		{TypeOf: "rt classid"},
		{TypeOf: "rt ip nexthop", Flags: interval},
		{TypeOf: "rt ip6 nexthop"},
		{TypeOf: "rt mtu"},
		{TypeOf: "rt ipsec"},
		{TypeOf: "socket transparent"},
		{TypeOf: "socket mark", Flags: interval},
		{TypeOf: "socket wildcard . meta mark"},
		{TypeOf: "socket cgroupv2 level 2"},
		{TypeOf: "osf name"},
		{TypeOf: "osf ttl skip version : verdict"},
		{TypeOf: "ipsec in reqid"},
		{TypeOf: "ipsec out spnum 2 spi", Flags: interval},
		{TypeOf: "ipsec in ip saddr . ipsec out ip6 daddr"},
		{TypeOf: "symhash mod 4 offset 2 : meta mark"},
		{TypeOf: "meta length . meta priority"},
		{TypeOf: "meta nftrace"},
		{TypeOf: "meta rtclassid . meta cgroup . meta cpu"},
		{TypeOf: "meta ibrname . meta obrname"},
		{TypeOf: "meta ibrpvid . meta ibrvproto"},
		{TypeOf: "meta time", Flags: interval},
		{TypeOf: "meta day . meta hour", Flags: interval},
		{TypeOf: "meta iifkind . meta oiftype . meta iifgroup"},
		{TypeOf: "meta sdif . meta sdifname"},
		{TypeOf: "meta secpath"},
		{TypeOf: "meta random . meta secmark"},
		{TypeOf: "meta skuid . meta skgid : meta priority"},
		{TypeOf: "ct helper"},
		{TypeOf: "ct original bytes . ct reply packets"},
		{TypeOf: "ct avgpkt", Flags: interval},
		{TypeOf: "ct zone . ct id : ct zone"},
		{TypeOf: "ct event"},
		{TypeOf: "ct expiration . ct secmark"},
		{TypeOf: "meta mark : ct zone"},
	}
	for _, decl := range sets {
		t.Run(decl.TypeOf, func(t *testing.T) {
			ours, err := compileEither(nft.FamilyInet, decl)
			if err != nil {
				t.Fatal(err)
			}
			ns.Nft(t, declare(nft.FamilyInet, ours.Map, decl))
			defer ns.Nft(t, "delete table inet t")
			theirs := dumpSet(t, ns, nft.FamilyInet)
			if diff := gocmp.Diff(theirs, ours.wire()); diff != "" {
				t.Errorf("declaration differs (-nft +weft):\n%s", diff)
			}
			if dumped := asDumped(ours); !reflect.DeepEqual(dumped, ours) || !dumped.Equal(ours) {
				t.Errorf("the dump reads as %+v, want %+v", *dumped, *ours)
			}
		})
	}
}
