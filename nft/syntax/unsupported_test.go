package syntax

import (
	"testing"

	"github.com/weft-proxy/weft/nft"
)

// TestUnsupported has what nft(8) takes and weft does not: the error is at the
// word that is not known, not somewhere behind it.
func TestUnsupported(t *testing.T) {
	for text, want := range map[string]string{
		"tcp flags syn tcp option maxseg size set rt mtu": "1:15: tcp option is not supported",
		"tcp dport 80 synproxy mss 1460 wscale 7":         "1:14: statement synproxy is not supported",
		"ip protocol tcp flow add @f":                     "1:17: statement flow is not supported",
		"tcp dport 80 tproxy to :3128":                    "1:14: statement tproxy is not supported",
		"udp length 5 queue num 0-3 bypass":               "1:14: statement queue is not supported",
		"dnat to jhash ip saddr mod 2 map { 0 : ::1 }":    "1:9: expression jhash is not supported",
		"socket transparent 1 accept":                     "1:1: expression socket is not supported",
		"counter accept @th,16,16 80":                     "1:16: raw payload is not supported: name a header field such as tcp dport",
		"tcp dport 80 counter name web":                   "1:14: counter objects are not supported: write the counter into the rule",
		`limit name "l" accept`:                           "1:1: limit objects are not supported: write the limit into the rule",
		"limit name l accept":                             "1:1: limit objects are not supported: write the limit into the rule",
	} {
		if _, err := ParseRule(nft.FamilyInet, text); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{"ip6 nexthdr frag accept", "counter", "meta l4proto tcp counter accept", "oifname socket drop"} {
		if _, err := ParseRule(nft.FamilyInet, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
