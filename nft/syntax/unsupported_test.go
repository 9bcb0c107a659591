package syntax

import (
	"testing"

	"github.com/weft-proxy/weft/nft"
)

// TestUnsupported checks the errors of statements that nft(8) accepts and weft does not.
// The error is at the unknown word, not after it.
func TestUnsupported(t *testing.T) {
	for text, want := range map[string]string{
		"tcp dport 80 xt target MARK": "1:14: xt statements are extensions of iptables, which nft(8) can list but not load: write the rule in nft's own words",
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
