package cyclonus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// the ports of every pod
var ports = []uint16{80, 81}

// agent is one pod: it serves its ports in all three protocols, and asks others.
type agent struct {
	pod   *lab.Pod
	watch observer
	// sockets until close
	open []interface{ Close() error }
	// The udp sockets live as long as the agent, so that flows outlive policy changes; sctp and icmp
	// are raw. All are IPv4, then IPv6.
	udp        [2]*net.UDPConn
	sctp, icmp [2]*net.IPConn
	// source numbers SCTP source ports and ICMP identifiers, so that the kernel sees no earlier
	// connection.
	source atomic.Uint32
}

// observer learns of the pods' received packets, by the nonces of the questions.
type observer interface {
	// arrived is called for a question by UDP or SCTP, answered for an answer.
	arrived(nonce uint64)
	answered(nonce uint64)
}

func newAgent(pod *lab.Pod, watch observer) (*agent, error) {
	a := &agent{pod: pod, watch: watch}
	err := pod.Do(func() error {
		for _, port := range ports {
			l, err := net.Listen("tcp", fmt.Sprintf("[::]:%d", port))
			if err != nil {
				return err
			}
			a.open = append(a.open, l)
			go serveTCP(l)
			conn, err := listenUDP("udp", fmt.Sprintf("[::]:%d", port))
			if err != nil {
				return err
			}
			a.open = append(a.open, conn)
			go a.serveUDP(conn)
		}
		for family := range 2 {
			for i, protocol := range []string{"132", []string{"1", "58"}[family]} {
				conn, err := net.ListenPacket([]string{"ip4:", "ip6:"}[family]+protocol, "")
				if err != nil {
					return err
				}
				a.open = append(a.open, conn)
				if err := enlarge(conn.(*net.IPConn)); err != nil {
					return err
				}
				*[]**net.IPConn{&a.sctp[family], &a.icmp[family]}[i] = conn.(*net.IPConn)
			}
			go a.serveICMP(family, a.icmp[family])
			go a.serveSCTP(a.sctp[family])
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start servers of %s: %w", pod.Name(), err), a.close())
	}
	for family := range 2 {
		if a.udp[family], err = a.newUDP(family); err != nil {
			return nil, errors.Join(err, a.close())
		}
		a.open = append(a.open, a.udp[family])
	}
	return a, nil
}

func (a *agent) close() error {
	var errs []error
	for _, c := range a.open {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func listenUDP(network, address string) (*net.UDPConn, error) {
	conn, err := net.ListenPacket(network, address)
	if err != nil {
		return nil, err
	}
	udp := conn.(*net.UDPConn)
	return udp, enlarge(udp)
}

// enlarge makes room for the packets of a second without CPU time. A full socket's drop would look like
// weft's.
func enlarge(conn syscall.Conn) error {
	const room = 8 << 20
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room)
		if errors.Is(failed, unix.EPERM) { // root of a user namespace: the machine's maximum
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, room)
		}
	})
	return errors.Join(err, failed)
}

// serveTCP echoes, and closes connections after a silent minute.
func serveTCP(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		// No state of a connection remains after its end.
		_ = conn.(*net.TCPConn).SetLinger(0)
		go func() {
			defer conn.Close()
			b := make([]byte, 8)
			for {
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				n, err := conn.Read(b)
				if err != nil {
					return
				}
				if _, err := conn.Write(b[:n]); err != nil {
					return
				}
			}
		}()
	}
}

func (a *agent) serveUDP(conn *net.UDPConn) {
	b := make([]byte, 64)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && n == 8 {
			a.watch.arrived(binary.BigEndian.Uint64(b))
			_, _ = conn.WriteToUDPAddrPort(b[:n], from)
		}
	}
}

// newUDP also reports answers.
func (a *agent) newUDP(family int) (*net.UDPConn, error) {
	var conn *net.UDPConn
	err := a.pod.Do(func() (err error) {
		conn, err = listenUDP([]string{"udp4", "udp6"}[family], ":0")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open UDP socket in %s: %w", a.pod.Name(), err)
	}
	go func() {
		b := make([]byte, 64)
		for {
			n, _, err := conn.ReadFromUDPAddrPort(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil && n == 8 {
				a.watch.answered(binary.BigEndian.Uint64(b))
			}
		}
	}()
	return conn, nil
}

// serveSCTP answers INITs to the ports and reports answers.
func (a *agent) serveSCTP(conn *net.IPConn) {
	b := make([]byte, 256)
	for {
		n, addr, err := conn.ReadFromIP(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		from, to, chunk, nonce, ok := parseSCTP(b[:n])
		switch {
		case !ok:
		case chunk == sctpInitAck:
			a.watch.answered(nonce)
		case chunk == sctpInit && slices.Contains(ports, to):
			a.watch.arrived(nonce)
			_, _ = conn.WriteToIP(sctpPacket(to, from, 1, sctpInitAck, nonce), addr)
		}
	}
}

// 0 for IPv4, 1 for IPv6
func family(addr netip.Addr) int {
	if addr.Is4() {
		return 0
	}
	return 1
}

// ask sends one question, for UDP on the given socket. TCP reports a connection itself and returns when
// ctx ends.
func (a *agent) ask(ctx context.Context, udp *net.UDPConn, protocol corev1.Protocol, to netip.AddrPort, nonce uint64) {
	switch protocol {
	case corev1.ProtocolUDP:
		_, _ = udp.WriteToUDPAddrPort(binary.BigEndian.AppendUint64(nil, nonce), to)
	case corev1.ProtocolSCTP:
		source := uint16(1024 + a.source.Add(1)%60000)
		_, _ = a.sctp[family(to.Addr())].WriteToIP(sctpPacket(source, to.Port(), 0, sctpInit, nonce), &net.IPAddr{IP: to.Addr().AsSlice()})
	case "":
		identifier := uint16(a.source.Add(1))
		_, _ = a.icmp[family(to.Addr())].WriteToIP(echo(family(to.Addr()), identifier, nonce), &net.IPAddr{IP: to.Addr().AsSlice()})
	case corev1.ProtocolTCP:
		conn, err := a.pod.Dial(ctx, "tcp", to.String())
		if err != nil {
			return
		}
		a.watch.answered(nonce)
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	default:
		panic(fmt.Sprintf("cyclonus: protocol %q", protocol))
	}
}
