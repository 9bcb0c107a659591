package syntax

import (
	"testing"

	"github.com/weft-proxy/weft/nft"
)

// TestUnsupported checks the errors of statements that nft(8) accepts and weft does not.
// The error is at the unknown word, not after it.
func TestUnsupported(t *testing.T) {
	for text, want := range map[string]string{
		"tcp dport 80 xt target MARK":                   "1:14: xt statements are extensions of iptables, which nft(8) can list but not load: write the rule in nft's own words",
		"tcp dport 80 last":                             "1:14: nft 1.0.7 has last; weft does not",
		"udp dport 4789 vxlan ip saddr 192.0.2.1":       "1:16: nft 1.0.7 has vxlan; weft does not",
		"gre version 0":                                 "1:1: nft 1.0.7 has gre; weft does not",
		"meta broute set 1":                             "1:1: nft 1.0.7 has meta broute; weft does not",
		"icmpv6 taddr fe80::1":                          "1:1: nft 1.0.9 has icmpv6 taddr; weft does not",
		"iifname . meta ibrhwaddr { lo . 0:0:0:0:0:0 }": "1:11: nft 1.1.6 has meta ibrhwaddr; weft does not",
		"meta mark set ct mark | meta mark":             "1:25: nft 1.1.2 has a selector after |, on Linux 6.13; weft has only constants there",
		"fib daddr check vmap { missing : drop }":       "1:11: nft 1.1.4 has fib check as a value; weft has only \"check exists\" and \"check missing\"",
		"log prefix group 5":                            `1:12: unexpected "group": want a log prefix in double quotes`,
		"jump { accept }":                               "1:6: a chain in braces is possible only in the rules of a file: declare a chain, and write its name here",
	} {
		if _, err := ParseRule(nft.FamilyInet, text); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"ip6 nexthdr frag accept", "counter", "meta l4proto tcp counter accept", "oifname socket drop", "fib daddr . iif check missing drop", "meta protocol gre"} {
		if _, err := ParseRule(nft.FamilyInet, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
