package model

import (
	"fmt"
	"net/netip"
	"testing"
)

// TestNodePortAddresses covers the configuration, the node's own addresses, and neither.
func TestNodePortAddresses(t *testing.T) {
	prefix := netip.MustParsePrefix
	v4 := Node{Addresses: [NumFamilies]netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	for _, tt := range []struct {
		name       string
		configured []netip.Prefix
		node       Node
		want       [NumFamilies]string
	}{
		{"no node yet", nil, Node{}, [NumFamilies]string{"{true [] false}", "{true [] false}"}},
		{"the node's address", nil, v4, [NumFamilies]string{"{false [192.0.2.1/32] true}", "{false [] true}"}},
		{"prefixes of one family", []netip.Prefix{prefix("192.0.2.0/24"), prefix("127.0.0.0/8")}, v4, [NumFamilies]string{"{false [192.0.2.0/24] false}", "{false [] false}"}},
		{"all of one family", []netip.Prefix{prefix("2001:db8::/64"), prefix("0.0.0.0/0")}, v4, [NumFamilies]string{"{true [] false}", "{false [2001:db8::/64] false}"}},
	} {
		for f := range NumFamilies {
			if got := fmt.Sprint(NodePortAddressesOf(tt.configured, &tt.node, f)); got != tt.want[f] {
				t.Errorf("%s, %s: %s, want %s", tt.name, f, got, tt.want[f])
			}
		}
	}
}
