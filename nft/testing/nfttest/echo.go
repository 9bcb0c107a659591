package nfttest

import (
	"io"
	"net"
	"testing"
)

// Echo answers TCP and UDP at an address of the namespace with what it gets, until the test ends.
func (ns *NS) Echo(t testing.TB, at string) {
	t.Helper()
	var l net.Listener
	var p net.PacketConn
	err := ns.Do(func() (err error) {
		if l, err = net.Listen("tcp", at); err != nil {
			return err
		}
		p, err = net.ListenPacket("udp", at)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); p.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	go func() {
		for b := make([]byte, 64); ; {
			n, from, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = p.WriteTo(b[:n], from)
		}
	}()
}
