package datatype_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestDescribe compares the types with `nft describe`.
func TestDescribe(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	symbol := regexp.MustCompile(`(?m)^\s+(\S+)\s+(0x[0-9a-f]+|\d+)$`)
	for _, name := range datatype.Names() {
		typ, _ := datatype.Lookup(name)
		args := []string{"describe", name}
		switch typ {
		case datatype.Mark, datatype.Time:
			continue // nft reads the word as a meta key
		case datatype.ECN:
			args = []string{"describe", "ip", "ecn"}
		}
		out := ns.Run(t, "nft", args...)
		if want := fmt.Sprintf("datatype %s (%s)", name, typ.Desc); !strings.Contains(out, want) {
			t.Errorf("%s: nft does not say %q:\n%s", name, want, out)
		}
		width := fmt.Sprintf(" %d bits", typ.Bits)
		if typ == datatype.CGroupV2 && !strings.Contains(out, width) {
			continue
		}
		if !strings.Contains(out, width) {
			t.Errorf("%s: nft does not say %q:\n%s", name, width, out)
		}
		for _, m := range symbol.FindAllStringSubmatch(out, -1) {
			want := nfttest.Must(strconv.ParseUint(m[2], 0, 64))
			if typ == datatype.EtherType || typ == datatype.ARPOp {
				// nft describes these as they lie in memory.
				want = want>>8 | want&0xff<<8
			}
			if got, err := typ.ParseUint(m[1]); err != nil || got != want {
				t.Errorf("%s: %s is %d (%v), nft says %d", name, m[1], got, err, want)
			}
		}
	}
}

// TestKeywordsAsNFT gives nft words without quotes as a name and as a log prefix: it refuses
// those that are keywords, and no others.
func TestKeywordsAsNFT(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns := nfttest.New(t)
	words := []string{
		"accept", "add", "all", "arp", "chain", "continue", "counter", "ct", "dnat", "drop", "ecn", "element", "ether", "goto", "ip", "ip6",
		"jump", "limit", "log", "mark", "meta", "notrack", "queue", "redirect", "reject", "reset", "return", "set", "snat", "table", "tcp", "vlan",
		"bypass", "eth0", "helper", "input", "length", "lo", "original", "saddr", "state", "wan", "zone",
	}
	for _, word := range words {
		for rule, text := range map[string]bool{"iifname " + word: false, "log prefix " + word: true} {
			_, err := ns.Output("table inet t { chain c { "+rule+" ; } ; }\n", "nft", "-c", "-f", "-")
			if got := datatype.IsKeyword(word, text); got != (err != nil) {
				t.Errorf("%s: a keyword: %v, nft: %v", rule, got, err)
			}
		}
	}
}
