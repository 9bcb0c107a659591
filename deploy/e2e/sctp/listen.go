package sctp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
)

// SCTPAddr is a port at addresses, or without addresses at all.
type SCTPAddr struct {
	IPAddrs []net.IPAddr
	Port    int
}

func address(a netip.Addr, port uint16) *SCTPAddr {
	return &SCTPAddr{IPAddrs: []net.IPAddr{{IP: a.AsSlice(), Zone: a.Zone()}}, Port: int(port)}
}

// Network returns "sctp".
func (a *SCTPAddr) Network() string { return "sctp" }

// String returns the addresses, with "/" between them, and the port.
func (a *SCTPAddr) String() string {
	var ips []string
	for _, ip := range a.IPAddrs {
		ips = append(ips, ip.String())
	}
	return net.JoinHostPort(strings.Join(ips, "/"), strconv.Itoa(a.Port))
}

// ResolveSCTPAddr resolves a name or address and a port.
func ResolveSCTPAddr(network, hostport string) (*SCTPAddr, error) {
	tcp, err := net.ResolveTCPAddr(strings.Replace(network, "sctp", "tcp", 1), hostport)
	if err != nil {
		return nil, err
	}
	a := &SCTPAddr{Port: tcp.Port}
	if tcp.IP != nil {
		a.IPAddrs = []net.IPAddr{{IP: tcp.IP, Zone: tcp.Zone}}
	}
	return a, nil
}

// DialSCTP opens an association. It waits for the peer, and ignores the local address.
func DialSCTP(_ string, _, remote *SCTPAddr) (*SCTPConn, error) {
	if remote == nil || len(remote.IPAddrs) != 1 {
		return nil, errors.New("dial sctp: not one address")
	}
	addr, _ := netip.AddrFromSlice(remote.IPAddrs[0].IP)
	addr = addr.Unmap().WithZone(remote.IPAddrs[0].Zone)
	s, err := open(addr.Is4(), addr.Is6())
	if err != nil {
		return nil, fmt.Errorf("dial sctp %s: %w", remote, err)
	}
	port := uint16(32768 + rand.IntN(28232))
	c := newConn(s, netip.Addr{}, addr, port, uint16(remote.Port), s.close)
	s.read(func(local, from netip.Addr, p packet) {
		if from == addr && p.from == c.peer && p.to == port {
			c.handle(local, p)
		}
	})
	if err := c.connect(); err != nil {
		return nil, fmt.Errorf("dial sctp %s: %w", remote, err)
	}
	return c, nil
}

// SCTPListener accepts associations at a port.
type SCTPListener struct {
	socket   *socket
	addr     *SCTPAddr
	accepted chan *SCTPConn
	closed   chan struct{}
	once     sync.Once

	mu    sync.Mutex
	conns map[peer]*SCTPConn
}

type peer struct {
	local, remote netip.Addr
	port          uint16
}

// backlog bounds associations that wait for AcceptSCTP.
const backlog = 128

// ListenSCTP listens at a port of an address, or of all addresses of that family if it is unspecified.
func ListenSCTP(_ string, local *SCTPAddr) (*SCTPListener, error) {
	var addr netip.Addr
	if len(local.IPAddrs) > 0 {
		addr, _ = netip.AddrFromSlice(local.IPAddrs[0].IP)
		addr = addr.Unmap()
	}
	s, err := open(!addr.IsValid() || addr.Is4() || addr.IsUnspecified(), !addr.Is4())
	if err != nil {
		return nil, fmt.Errorf("listen sctp %s: %w", local, err)
	}
	l := &SCTPListener{
		socket: s, addr: local,
		accepted: make(chan *SCTPConn, backlog), closed: make(chan struct{}), conns: map[peer]*SCTPConn{},
	}
	s.read(func(to, from netip.Addr, p packet) {
		if int(p.to) == local.Port && (!addr.IsValid() || addr.IsUnspecified() || addr == to) {
			l.handle(peer{local: to, remote: from, port: p.from}, p)
		}
	})
	return l, nil
}

// An INIT of a peer with an association means that the peer has forgotten it.
func (l *SCTPListener) handle(k peer, p packet) {
	l.mu.Lock()
	c := l.conns[k]
	if starts := len(p.chunks) == 1 && p.chunks[0].kind == initiate; starts && (c == nil || c.running()) {
		c = newConn(l.socket, k.local, k.remote, uint16(l.addr.Port), k.port, nil)
		c.phase = waitCookie
		made := c
		c.done = func() { l.forget(k, made) }
		l.conns[k] = c
	}
	l.mu.Unlock()
	if c != nil && c.handle(k.local, p) {
		select {
		case l.accepted <- c:
		default:
		}
	}
}

func (c *SCTPConn) running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase > waitCookie
}

// forget must not wait for the listener's lock, whose holder may wait for the association's lock.
func (l *SCTPListener) forget(k peer, c *SCTPConn) {
	go func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.conns[k] == c {
			delete(l.conns, k)
		}
	}()
}

// AcceptSCTP waits for an association.
func (l *SCTPListener) AcceptSCTP() (*SCTPConn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, fmt.Errorf("accept sctp %s: %w", l.addr, net.ErrClosed)
	}
}

// Accept is AcceptSCTP.
func (l *SCTPListener) Accept() (net.Conn, error) { return l.AcceptSCTP() }

// Addr returns the listener's address.
func (l *SCTPListener) Addr() net.Addr { return l.addr }

// Close closes the sockets and all accepted associations.
func (l *SCTPListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.socket.close()
	})
	return nil
}
