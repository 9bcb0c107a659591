package daemon

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// TestListening finds ports that are listened on, of each family and while they are.
func TestListening(t *testing.T) {
	for _, test := range []struct {
		family  uint8
		address string
	}{{unix.AF_INET, "127.0.0.1:0"}, {unix.AF_INET6, "[::1]:0"}} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", test.address)
		if err != nil {
			t.Fatal(err)
		}
		dialer, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer dialer.Close()
		port := func(a net.Addr) uint16 { return netip.MustParseAddrPort(a.String()).Port() }
		ports := make(map[uint16]bool)
		if err := listening(test.family, ports); err != nil || !ports[port(l.Addr())] || ports[port(dialer.LocalAddr())] {
			t.Errorf("%s is listened on and %s is not: %v, %v", l.Addr(), dialer.LocalAddr(), ports, err)
		}
		_ = l.Close()
		ports = make(map[uint16]bool)
		if err := listening(test.family, ports); err != nil || ports[port(l.Addr())] {
			t.Errorf("%s is not listened on any more: %v, %v", l.Addr(), ports, err)
		}
	}
}
