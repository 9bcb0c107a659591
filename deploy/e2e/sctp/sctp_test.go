package sctp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inNamespace runs the test on a thread with a new network namespace, for sockets.
func inNamespace(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("raw sockets need root")
	}
	// The thread ends with the goroutine of the test.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatal(err)
	}
	test(t)
}

func resolve(t *testing.T, hostport string) *SCTPAddr {
	t.Helper()
	a, err := ResolveSCTPAddr("sctp", hostport)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// echo answers each association's first message with the peer's address and the message.
func echo(l *SCTPListener) {
	for {
		c, err := l.AcceptSCTP()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			b := make([]byte, 2000)
			n, err := c.Read(b)
			if err != nil {
				return
			}
			remote, _ := c.SCTPRemoteAddr(0)
			_, _ = c.Write(fmt.Appendf(nil, "%s %s", remote.IPAddrs[0].String(), b[:n]))
		}()
	}
}

func TestAssociation(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		for _, test := range []struct{ listen, dial, want string }{
			{":9003", "127.0.0.1:9003", "127.0.0.1 hostname"},
			{":9004", "[::1]:9004", "::1 hostname"},
			{"0.0.0.0:9005", "127.0.0.2:9005", "127.0.0.1 hostname"},
			{"127.0.0.3:9006", "127.0.0.3:9006", "127.0.0.1 hostname"},
		} {
			l, err := ListenSCTP("sctp", resolve(t, test.listen))
			if err != nil {
				t.Fatal(err)
			}
			go echo(l)
			c, err := DialSCTP("sctp", nil, resolve(t, test.dial))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write([]byte("hostname")); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 100)
			n, err := c.Read(b)
			if err != nil || string(b[:n]) != test.want {
				t.Errorf("%s: got %q, %v", test.dial, b[:n], err)
			}
			if _, err := c.Read(b); !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: read after the peer closed: %v", test.dial, err)
			}
			start := time.Now()
			if err := c.Close(); err != nil || time.Since(start) > linger/2 {
				t.Errorf("%s: close: %v after %s", test.dial, err, time.Since(start))
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestServerWritesFirst acts as agnhost's porter: the server writes and closes, and the client writes
// before it reads.
func TestServerWritesFirst(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		l, err := ListenSCTP("sctp", resolve(t, "0.0.0.0:9003"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.AcceptSCTP()
				if err != nil {
					return
				}
				go func() {
					_, _ = c.Write([]byte("foo"))
					_ = c.Close()
				}()
			}
		}()
		conns := make([]*SCTPConn, 20)
		for i := range conns {
			c, err := DialSCTP("sctp", nil, resolve(t, "127.0.0.1:9003"))
			if err != nil {
				t.Fatal(err)
			}
			conns[i] = c
		}
		var wait sync.WaitGroup
		for _, c := range conns {
			wait.Go(func() {
				if _, err := c.Write([]byte("\n")); err != nil {
					t.Error(err)
				}
				b := make([]byte, 10)
				if n, err := c.Read(b); err != nil || string(b[:n]) != "foo" {
					t.Errorf("got %q, %v", b[:n], err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestNoServer: without an answer, the deadline of Read is kept.
func TestNoServer(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		answered := make(chan error, 1)
		s, err := open(true, false)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		c := newConn(s, netip.Addr{}, netip.MustParseAddr("127.0.0.1"), 40000, 9003, func() {})
		go func() { answered <- c.connect() }()
		select {
		case err := <-answered:
			t.Fatalf("connected: %v", err)
		case <-time.After(3 * retransmission):
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-answered; !errors.Is(err, net.ErrClosed) {
			t.Errorf("connect after close: %v", err)
		}
		_ = c.SetReadDeadline(time.Now())
		if _, err := c.Read(nil); err == nil {
			t.Error("read: no error")
		}
	})
}

func TestPacket(t *testing.T) {
	p := packet{from: 1, to: 2, tag: 3, chunks: []chunk{
		{kind: initiateAck, body: initBody(5, 6, []byte("cookie!"))},
		{kind: data, flags: whole, body: dataBody(7, 0, []byte("text"))},
	}}
	b := p.encode()
	got, ok := decode(b)
	if !ok || !reflect.DeepEqual(got, p) {
		t.Errorf("got %+v, %t", got, ok)
	}
	if tag, sequence, cookie, ok := parseInit(got.chunks[0].body); !ok || tag != 5 || sequence != 6 || string(cookie) != "cookie!" {
		t.Errorf("tag %d, sequence %d, cookie %q, %t", tag, sequence, cookie, ok)
	}
	for i := range b {
		damaged := append([]byte(nil), b...)
		damaged[i] ^= 0x10
		if _, ok := decode(damaged); ok {
			t.Errorf("byte %d changed: accepted", i)
		}
		if _, ok := decode(b[:i]); ok {
			t.Errorf("%d bytes: accepted", i)
		}
	}
}
