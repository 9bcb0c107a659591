package explain

import (
	"net/netip"
	"strings"
	"testing"
)

func TestPair(t *testing.T) {
	four, six := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	both := place{addrs: []netip.Addr{four, six}}
	for _, tt := range []struct {
		name     string
		from, to place
		six      bool
		src, dst netip.Addr
		err      string
	}{
		{"both have both", both, both, false, four, four, ""},
		{"IPv6 is preferred", both, both, true, six, six, ""},
		{"one has IPv6", both, place{addrs: []netip.Addr{six}}, false, six, six, ""},
		{"the node", place{node: true}, both, true, netip.Addr{}, six, ""},
		{"no family in common", place{addrs: []netip.Addr{four}}, place{addrs: []netip.Addr{six}}, false, netip.Addr{}, netip.Addr{}, "another IP family"},
	} {
		src, dst, err := pair(tt.from, tt.to, tt.six)
		if src != tt.src || dst != tt.dst || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %s to %s, %v", tt.name, src, dst, err)
		}
	}
}

// TestPacket makes packets of each protocol: what is read from them is what they were made of.
func TestPacket(t *testing.T) {
	for _, addrs := range [][2]string{{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "fd00::2"}} {
		for name, protocol := range protocols {
			f := flow{protocol: protocol}
			var sport, dport uint16
			if hasPorts(protocol) {
				sport, dport = 40000, 80
			}
			f.source, f.destination = netip.AddrPortFrom(netip.MustParseAddr(addrs[0]), sport), netip.AddrPortFrom(netip.MustParseAddr(addrs[1]), dport)
			for _, reply := range []bool{false, true} {
				if got := flowOf(f.packet(reply)); got != f {
					t.Errorf("%s: %+v, want %+v", name, got, f)
				}
			}
		}
	}
}
