package sockdiag

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFrom finds the connections and listening sockets of an address, and Destroy ends a connection.
func TestFrom(t *testing.T) {
	own := netip.MustParseAddr("127.0.0.9")
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.9:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: own.AsSlice()}}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	is := func(a netip.Addr) bool { return a == own }
	bound, err := Bound(is)
	listening := netip.MustParseAddrPort(l.Addr().String())
	if err != nil || len(bound) != 1 || bound[0].Local != listening {
		t.Errorf("bound are %v, %v", bound, err)
	}
	from, err := From(is)
	want := Socket{netip.MustParseAddrPort(c.LocalAddr().String()), listening}
	if err != nil || !slices.Contains(from, want) {
		t.Fatalf("connections %v, %v, want %v among them", from, err, want)
	}
	switch err := Destroy(want); {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EOPNOTSUPP):
		t.Skipf("destroy the connection: %v", err)
	case err != nil:
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNABORTED) {
		t.Errorf("read: %v", err)
	}
	if err := Destroy(want); !errors.Is(err, unix.ENOENT) {
		t.Errorf("destroy it again: %v", err)
	}
}
