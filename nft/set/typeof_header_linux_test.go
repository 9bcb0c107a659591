package set

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestTypeOfHeadersAsNft declares sets of each header field, and of raw
// payload, and compares the kernel's view of them with that of nft's. The
// dump of a set must read as the set.
func TestTypeOfHeadersAsNft(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	fields := map[nft.Family][]string{nft.FamilyInet: {
		"@nh,0,8", "@nh,8,16", "@ll,0,48", "@th,0,16", "@th,16,16", "@th,8,32", "@ih,0,128", "@nh,4,4", "@nh,3,7",
		"@nh,96,32 . tcp dport", "tcp dport . @th,8,8 . ip dscp", "ip6 flowlabel . ip6 dscp",
	}, nft.FamilyBridge: {"ether saddr . vlan id . ip saddr", "vlan pcp . vlan dei"}}
	for _, h := range selector.Headers {
		family := nft.FamilyInet
		switch h.Name {
		case "ether", "vlan":
			family = nft.FamilyBridge
		case "arp":
			family = nft.FamilyARP
		}
		for _, f := range h.Fields {
			fields[family] = append(fields[family], h.Name+" "+f.Name)
		}
	}
	for family, list := range fields {
		for _, f := range list {
			decl := nft.Set{TypeOf: f}
			ours, err := compileEither(family, decl)
			if err != nil {
				t.Error(err)
				continue
			}
			ns.Nft(t, declare(family, false, decl))
			theirs := dumpSet(t, ns, family)
			ns.Nft(t, fmt.Sprintf("delete table %s t", family))
			if diff := gocmp.Diff(theirs, ours.wire()); diff != "" {
				t.Errorf("typeof %s differs (-nft +weft):\n%s", f, diff)
			}
			if dumped := asDumped(ours); !reflect.DeepEqual(dumped, ours) || !dumped.Equal(ours) {
				t.Errorf("typeof %s: the dump reads as %+v, want %+v", f, *dumped, *ours)
			}
		}
	}
}

// TestHeaderTables checks what the tables of headers have to do with each
// other.
func TestHeaderTables(t *testing.T) {
	seen := map[uint32]bool{}
	for _, h := range selector.Headers {
		if h.Desc == 0 || seen[h.Desc] || selector.HeaderByName(h.Name) != h {
			t.Errorf("header %s has the number %d of another one", h.Name, h.Desc)
		}
		seen[h.Desc] = true
		for _, u := range h.Uppers {
			if up := h.Upper(u.Num); up == nil || !slices.Contains(selector.Headers[:], up) {
				t.Errorf("%s carries %s, which is not a header", h.Name, u.Name)
			}
		}
	}
}
