package aggregator_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestIndexByName has rules that compare the index of an interface with its name, while the interface is not
// there, there, gone, and back under another index.
func TestIndexByName(t *testing.T) {
	nfttest.Require(t, nfttest.Namespaces, nfttest.NFT)
	ns, peer := nfttest.New(t), nfttest.New(t)
	d, _ := startKernel(t, ns, aggregator.Config{}, false)
	from := []*weftv1.Rule{{Text: `iif "wg0" udp dport 9 counter`}, {Text: `iif != "wg0" udp dport 9 counter`}, {Text: `fib saddr oif "wg0" udp dport 9 counter`}}
	if _, err := d.Dial(t, "tester").Apply(aggregatortest.Context(t), &weftv1.Fragment{Name: "links", Tables: []*weftv1.Table{{Family: "inet", Name: "links",
		Chains: []*weftv1.Chain{{Name: "input", Type: "filter", Hook: "input", Priority: "0", Rules: from}}}}}); err != nil {
		t.Fatal(err)
	}
	send := func(from *nfttest.NS, to string) {
		t.Helper()
		if err := from.Do(func() error {
			c, err := net.Dial("udp", to)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			_, err = c.Write([]byte("?"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	counted := func(want ...string) {
		t.Helper()
		aggregatortest.Eventually(t, strings.Join(want, ", "), func() bool {
			list := ns.ListRuleset(t)
			for i, rule := range []string{`iifname "wg0" udp dport 9`, `iifname != "wg0" udp dport 9`, `fib saddr oifname "wg0" udp dport 9`} {
				if !strings.Contains(list, rule+" counter packets "+want[i]+" ") {
					return false
				}
			}
			return true
		})
	}
	ns.Run(t, "ip", "link", "set", "lo", "up")
	send(ns, "127.0.0.1:9")
	counted("0", "1", "0")
	for i, want := range []string{"1", "2"} {
		// Another link takes the index.
		ns.Run(t, "ip", "link", "add", "other"+want, "type", "bridge")
		nfttest.Veth(t, nfttest.Port{NS: ns, Name: "wg0", Addrs: []netip.Prefix{netip.MustParsePrefix("10.7.0.1/24")}},
			nfttest.Port{NS: peer, Name: "p" + want, Addrs: []netip.Prefix{netip.MustParsePrefix("10.7.0.2/24")}})
		send(peer, "10.7.0.1:9")
		counted(want, []string{"1", "2"}[i], want)
		ns.Run(t, "ip", "link", "del", "wg0")
		send(ns, "127.0.0.1:9")
		counted(want, []string{"2", "3"}[i], want)
	}
}
