package nfttest

import (
	"net/netip"
	"testing"

	"github.com/weft-proxy/weft/nft/testing/nfttest/netns"
)

// Port is one end of a veth pair.
type Port struct {
	NS *NS
	// at most 15 bytes
	Name string
	// with prefix lengths
	Addrs []netip.Prefix
}

// Veth connects two namespaces and sets both ends up. IPv6 addresses are usable at once, without
// duplicate address detection.
func Veth(t testing.TB, a, b Port) {
	t.Helper()
	if err := netns.Join(netns.Port{NS: a.NS.Namespace, Link: a.Name, Addrs: a.Addrs}, netns.Port{NS: b.NS.Namespace, Link: b.Name, Addrs: b.Addrs}); err != nil {
		t.Fatal(err)
	}
}

// Route adds a route through gateway.
func (ns *NS) Route(t testing.TB, dst netip.Prefix, gateway netip.Addr) {
	t.Helper()
	if err := ns.Namespace.Route(dst, "", gateway); err != nil {
		t.Fatal(err)
	}
}
