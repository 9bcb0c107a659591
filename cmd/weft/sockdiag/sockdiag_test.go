package sockdiag

import (
	"net"
	"net/netip"
	"testing"
)

// TestListening finds ports that are listened on, of each family and while they are.
func TestListening(t *testing.T) {
	port := func(a net.Addr) uint16 { return netip.MustParseAddrPort(a.String()).Port() }
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		ports, err := Listening()
		if err != nil || !ports[port(l.Addr())] || ports[port(c.LocalAddr())] {
			t.Errorf("%s is listened on and %s is not: %v, %v", l.Addr(), c.LocalAddr(), ports, err)
		}
		_, _ = c.Close(), l.Close()
		if ports, err = Listening(); err != nil || ports[port(l.Addr())] {
			t.Errorf("%s is not listened on any more: %v, %v", l.Addr(), ports, err)
		}
	}
}
