package balancer

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPool(t *testing.T) {
	p := pool{ranges: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/30"), netip.MustParsePrefix("2001:db8::/64")}}
	both := []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	first, err := p.allocate(both)
	if err != nil || len(first) != 2 || first[0] != netip.MustParseAddr("203.0.113.1") || first[1] != netip.MustParseAddr("2001:db8::1") {
		t.Fatalf("first = %v, %v", first, err)
	}
	second, err := p.allocate(both[:1])
	if err != nil || second[0] != netip.MustParseAddr("203.0.113.2") {
		t.Fatalf("second = %v, %v", second, err)
	}
	if got, err := p.allocate(both); err == nil {
		t.Fatalf("of a full range = %v, want an error", got)
	}
	p.free(first)
	again, err := p.allocate(both)
	if err != nil || again[0] != first[0] || again[1] == first[1] {
		t.Fatalf("after free = %v, %v, want the only free IPv4 address and another IPv6 address", again, err)
	}
}
