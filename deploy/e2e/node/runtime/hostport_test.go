package runtime

import (
	"net/netip"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	text := rules([]forward{
		{"tcp", netip.MustParseAddr("127.0.0.1"), 80, netip.MustParseAddr("10.244.1.2"), 8080},
		{"udp", netip.Addr{}, 53, netip.MustParseAddr("fd00:10:244:1::2"), 5353},
	})
	for _, want := range []string{
		"meta nfproto ipv4 ip daddr 127.0.0.1 tcp dport 80 dnat ip to 10.244.1.2:8080\n",
		"meta nfproto ipv6 fib daddr type local udp dport 53 dnat ip6 to [fd00:10:244:1::2]:5353\n",
		"ip saddr 127.0.0.0/8 ip daddr 10.244.1.2 tcp dport 8080 masquerade\n",
		"ip6 saddr fd00:10:244:1::2 ip6 daddr fd00:10:244:1::2 udp dport 5353 masquerade\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no rule %q in\n%s", want, text)
		}
	}
}
