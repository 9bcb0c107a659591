package isolation

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"
)

const port = 8080

// serve starts echo servers of TCP and UDP at each address of all ends.
func (w *world) serve(t *testing.T) {
	t.Helper()
	for _, e := range w.ends() {
		e.serve(t, append(append([]netip.Addr{e.local[0], scoped(e.local[1], e.device)}, e.own[:]...), e.second[:]...)...)
	}
	for _, s := range w.sites {
		served := map[string]bool{}
		for _, p := range s.pods() {
			if dev, local := s.gateway(t, p); !served[dev.Name] {
				served[dev.Name] = true
				s.node.serve(t, scoped(local, dev))
			}
		}
	}
}

// scoped adds the interface of a link-local address.
func scoped(a netip.Addr, dev net.Interface) netip.Addr {
	if a.Is4() {
		return a
	}
	return a.WithZone(strconv.Itoa(dev.Index))
}

func (e *end) serve(t *testing.T, addrs ...netip.Addr) {
	t.Helper()
	for _, a := range addrs {
		var l net.Listener
		var p net.PacketConn
		err := e.Do(func() (err error) {
			at := netip.AddrPortFrom(a, port).String()
			if l, err = net.Listen("tcp", at); err == nil {
				p, err = net.ListenPacket("udp", at)
			}
			return err
		})
		if err != nil {
			t.Fatalf("serve in %s: %v", e.Name(), err)
		}
		t.Cleanup(func() { l.Close(); p.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					for b := make([]byte, 64); ; {
						n, err := c.Read(b)
						if err != nil {
							return
						}
						if _, err := c.Write(b[:n]); err != nil {
							return
						}
					}
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
}

// The waits for an answer, and for silence.
const (
	patience = 3 * time.Minute
	silence  = time.Second
)

// dial connects from an address, and exchanges a byte.
func (e *end) dial(network string, from, to netip.Addr) (net.Conn, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	if network == "udp" {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	var c net.Conn
	err := e.Do(func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c, err = d.DialContext(ctx, network, netip.AddrPortFrom(to, port).String())
		return err
	})
	if err == nil && !answered(c, patience) {
		c.Close()
		err = fmt.Errorf("%s from %s to %s: no answer", network, from, to)
	}
	return c, err
}

// answered resends a packet of UDP.
func answered(c net.Conn, within time.Duration) bool {
	b := []byte{1}
	for end := time.Now().Add(within); ; {
		if _, err := c.Write(b); err != nil {
			return false
		}
		until := time.Now().Add(within)
		if c.LocalAddr().Network() == "udp" {
			until = time.Now().Add(min(within/4, 5*time.Second))
		}
		_ = c.SetReadDeadline(until)
		if _, err := c.Read(b); err == nil {
			return true
		}
		if time.Now().After(end) || c.LocalAddr().Network() == "tcp" {
			return false
		}
	}
}
