package backends

import (
	"net/netip"
	"testing"

	nftset "github.com/weft-proxy/weft/nft/set"
)

// declOf returns the declaration of a map from the names of its types.
func declOf(key, data []string, length uint32) *nftset.Set {
	d := &nftset.Set{Map: true}
	d.Key.Names, d.Data.Names, d.Data.Len = key, data, length
	return d
}

func TestNewLayout(t *testing.T) {
	for _, tt := range []struct {
		name string
		decl *nftset.Set
		want Layout
		ok   bool
	}{
		{"address", declOf([]string{"ipv4_addr", "inet_proto", "inet_service", "integer"}, []string{"ipv4_addr", "inet_service"}, 8),
			Layout{addr: 4, proto: 4, port: 8, end: 12, dataAddr: 4, data: 8}, true},
		{"IPv6", declOf([]string{"ipv6_addr", "inet_proto", "inet_service"}, []string{"ipv6_addr", "inet_service"}, 20),
			Layout{addr: 16, proto: 16, port: 20, end: 24, dataAddr: 16, data: 20}, true},
		{"port alone", declOf([]string{"inet_proto", "inet_service", "integer"}, []string{"ipv4_addr", "inet_service"}, 8),
			Layout{port: 4, end: 8, dataAddr: 4, data: 8}, true},
		{"an address as data", declOf([]string{"ipv4_addr", "inet_proto", "inet_service"}, []string{"ipv4_addr"}, 4), Layout{}, false},
		{"another order", declOf([]string{"ipv4_addr", "inet_service", "inet_proto"}, []string{"ipv4_addr", "inet_service"}, 8), Layout{}, false},
		{"a set", &nftset.Set{}, Layout{}, false},
	} {
		if l, ok := NewLayout(tt.decl); ok != tt.ok || ok && l != tt.want {
			t.Errorf("%s: %+v, %t", tt.name, l, ok)
		}
	}
}

func TestPack(t *testing.T) {
	l, _ := NewLayout(declOf([]string{"ipv4_addr", "inet_proto", "inet_service", "integer"}, []string{"ipv4_addr", "inet_service"}, 8))
	dest, to := netip.MustParseAddrPort("10.96.0.1:53"), netip.MustParseAddrPort("10.1.0.1:5353")
	b, ok := l.Pack(dest, to)
	if !ok || l.Dest(b.Dest) != dest || l.AddrPort(b.Data) != to {
		t.Errorf("packed %q, %t", b, ok)
	}
	got, ok := l.Backend(&nftset.Element{Key: b.Dest + "\x00\x00\x00\x00", Data: b.Data})
	if !ok || got != b {
		t.Errorf("unpacked %q, %t", got, ok)
	}
	for _, e := range []nftset.Element{{}, {Key: "short"}, {Key: b.Dest, Data: "abc"}, {Key: "\x0a\x60\x00\x01\x06\x00\x00\x00\x00\x35\x00\x00", Data: b.Data}} {
		if b, ok := l.Backend(&e); ok {
			t.Errorf("backend of %q is %v", e.Key, b)
		}
	}
	if _, ok := l.Pack(netip.MustParseAddrPort("[fd00::1]:53"), to); ok {
		t.Error("an IPv6 destination is packed for an IPv4 map")
	}
}
