package nfttest

import (
	"net"
	"net/netip"
	"os"
	"testing"
)

// Sysctl writes values below /proc/sys/net.
func (ns *NS) Sysctl(t testing.TB, values map[string]string) {
	t.Helper()
	for path, value := range values {
		if err := ns.Do(func() error { return os.WriteFile("/proc/sys/net/"+path, []byte(value), 0) }); err != nil {
			t.Fatal(err)
		}
	}
}

// Serve answers TCP and UDP until the test ends: a TCP connection at once, and both for whatever comes.
func (ns *NS) Serve(t testing.TB, at netip.AddrPort, answer func(client netip.Addr) string) {
	t.Helper()
	var l net.Listener
	var p net.PacketConn
	err := ns.Do(func() (err error) {
		if l, err = net.Listen("tcp", at.String()); err != nil {
			return err
		}
		p, err = net.ListenPacket("udp", at.String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); p.Close() })
	to := func(client net.Addr) []byte {
		return []byte(answer(netip.MustParseAddrPort(client.String()).Addr().Unmap()))
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for b := make([]byte, 64); ; {
					if _, err := c.Write(to(c.RemoteAddr())); err != nil {
						return
					}
					if _, err := c.Read(b); err != nil {
						return
					}
				}
			}()
		}
	}()
	go func() {
		for b := make([]byte, 64); ; {
			_, from, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = p.WriteTo(to(from), from)
		}
	}()
}
