package runtime

import (
	"net/netip"
	"slices"
	"testing"
)

func TestPool(t *testing.T) {
	prefixes, err := parsePrefixes("10.244.3.0/24,fd00:10:244:3::/64")
	if err != nil {
		t.Fatal(err)
	}
	p := pool{prefixes: prefixes}
	first, err := p.allocate()
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.Addr{netip.MustParseAddr("10.244.3.2"), netip.MustParseAddr("fd00:10:244:3::2")}
	if got := p.addresses(first); !slices.Equal(got, want) {
		t.Errorf("addresses = %v, want %v", got, want)
	}
	p.free(first)
	for range lastNumber - firstNumber {
		if n, err := p.allocate(); err != nil || n == first {
			t.Fatalf("allocate = %d, %v, want another than the one that was free last", n, err)
		}
	}
	if n, err := p.allocate(); err != nil || n != first {
		t.Errorf("allocate = %d, %v, want %d, the only free one", n, err, first)
	}
	if n, err := p.allocate(); err == nil {
		t.Errorf("allocate of a full pool = %d", n)
	}
}
