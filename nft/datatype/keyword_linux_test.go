package datatype_test

import (
	"testing"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

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
