package chaos

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// stream is a TCP connection through the service: the client sends numbers, the
// server sends them back, and each must come back in its place.
type stream struct {
	conn net.Conn
	stop chan struct{}
	wg   sync.WaitGroup

	sent, received atomic.Uint64
	// failed gets why it broke, once.
	failed chan error
}

// wires joins a client and a server to the node, which forwards between them.
func wires(t *testing.T, node *nfttest.NS) (client, server *nfttest.NS) {
	t.Helper()
	client, server = nfttest.New(t), nfttest.New(t)
	at := func(ns *nfttest.NS, name, addr string) nfttest.Port {
		return nfttest.Port{NS: ns, Name: name, Addrs: []netip.Prefix{netip.MustParsePrefix(addr)}}
	}
	nfttest.Veth(t, at(node, "client0", "192.168.77.1/24"), at(client, "eth0", "192.168.77.2/24"))
	nfttest.Veth(t, at(node, "server0", "192.168.78.1/24"), at(server, "eth0", "192.168.78.2/24"))
	everywhere := netip.MustParsePrefix("0.0.0.0/0")
	client.Route(t, everywhere, netip.MustParseAddr("192.168.77.1"))
	server.Route(t, everywhere, netip.MustParseAddr("192.168.78.1"))
	if err := node.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
	}); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// openStream connects the client to the service and begins to send.
func openStream(t *testing.T, client, server *nfttest.NS) *stream {
	t.Helper()
	s := &stream{stop: make(chan struct{}), failed: make(chan error, 1)}
	var l net.Listener
	if err := server.Do(func() (err error) { l, err = net.Listen("tcp4", "192.168.78.2:8080"); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go echo(l)
	if err := client.Do(func() (err error) { s.conn, err = net.DialTimeout("tcp4", "10.96.0.1:80", patience); return err }); err != nil {
		t.Fatalf("connect through the service: %v", err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	s.wg.Go(func() { s.report("send", s.send()) })
	s.wg.Go(func() { s.report("receive", s.receive()) })
	return s
}

// echo serves one connection.
func echo(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.Copy(conn, conn)
}

func (s *stream) report(what string, err error) {
	if err == nil {
		return
	}
	select {
	case s.failed <- fmt.Errorf("%s, %d bytes sent, %d received: %w", what, s.sent.Load(), s.received.Load(), err):
	default:
	}
}

// send writes 1 KiB of numbers every millisecond until it is stopped.
func (s *stream) send() error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	block := make([]byte, 1024)
	for n := uint64(0); ; {
		for i := 0; i < len(block); i += 8 {
			binary.BigEndian.PutUint64(block[i:], n)
			n++
		}
		if err := s.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := s.conn.Write(block); err != nil {
			return err
		}
		s.sent.Add(uint64(len(block)))
		select {
		case <-s.stop:
			return s.conn.(*net.TCPConn).CloseWrite()
		case <-tick.C:
		}
	}
}

// receive reads the numbers until the server has sent all of them back.
func (s *stream) receive() error {
	in := bufio.NewReader(s.conn)
	word := make([]byte, 8)
	for n := uint64(0); ; n++ {
		if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		if _, err := io.ReadFull(in, word); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if got := binary.BigEndian.Uint64(word); got != n {
			return fmt.Errorf("word %d is %d", n, got)
		}
		s.received.Add(8)
	}
}

// check fails the run once the stream has broken.
func (s *stream) check(c *conductor) {
	select {
	case err := <-s.failed:
		c.fatal("the stream through the service broke: %v", err)
	default:
	}
}

// finish ends the stream; every byte must have come back.
func (s *stream) finish(c *conductor) uint64 {
	close(s.stop)
	s.wg.Wait()
	s.check(c)
	if s.sent.Load() != s.received.Load() {
		c.fatal("%d bytes were sent through the service, %d came back", s.sent.Load(), s.received.Load())
	}
	return s.received.Load()
}
