package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// struct inet_diag_req_v2 and struct inet_diag_msg (linux/inet_diag.h).
const (
	requestIDAt = 8
	requestLen  = requestIDAt + 48
	answerIDAt  = 4
	answerUIDAt = answerIDAt + 48 + 12
)

// As bits (net/tcp_states.h).
const (
	anyState    = ^uint32(0)
	stateListen = 1 << 10
	// without a listening, closed or waiting socket
	stateConnected = anyState &^ (stateListen | 1<<6 | 1<<7)
)

// request asks for sockets of unix.AF_INET or unix.AF_INET6.
func request(family uint8, states uint32) []byte {
	b := make([]byte, requestLen)
	b[0], b[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[4:], states)
	return b
}

func ask(kind netlink.HeaderType, request []byte, flags netlink.HeaderFlags) ([]netlink.Message, error) {
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Execute(netlink.Message{Header: netlink.Header{Type: kind, Flags: netlink.Request | flags}, Data: request})
}

// Socket is a connection. IPv4-mapped addresses are IPv4 addresses.
type Socket struct{ Local, Remote netip.AddrPort }

func exactly(s Socket) []byte {
	own, other := s.Local, s.Remote
	family := uint8(unix.AF_INET6)
	if own.Addr().Unmap().Is4() {
		family = unix.AF_INET
	}
	b := request(family, anyState)
	id := b[requestIDAt:]
	binary.BigEndian.PutUint16(id, own.Port())
	binary.BigEndian.PutUint16(id[2:], other.Port())
	copy(id[4:20], own.Addr().Unmap().AsSlice())
	copy(id[20:36], other.Addr().Unmap().AsSlice())
	for i := 40; i < 48; i++ {
		id[i] = 0xff // INET_DIAG_NOCOOKIE
	}
	return b
}

// From returns the connections with a local address that f selects.
func From(f func(netip.Addr) bool) ([]Socket, error) { return sockets(stateConnected, f) }

// Bound returns the listening sockets with a local address that f selects.
func Bound(f func(netip.Addr) bool) ([]Socket, error) { return sockets(stateListen, f) }

func sockets(states uint32, f func(netip.Addr) bool) (out []Socket, err error) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		answers, err := ask(unix.SOCK_DIAG_BY_FAMILY, request(family, states), netlink.Dump)
		if err != nil {
			return nil, fmt.Errorf("list sockets: %w", err)
		}
		for _, m := range answers {
			if len(m.Data) < answerUIDAt {
				continue
			}
			id, end := m.Data[answerIDAt:], 4
			if m.Data[0] == unix.AF_INET6 {
				end = 16
			}
			local, _ := netip.AddrFromSlice(id[4 : 4+end])
			remote, _ := netip.AddrFromSlice(id[20 : 20+end])
			if local = local.Unmap(); f(local) {
				out = append(out, Socket{netip.AddrPortFrom(local, binary.BigEndian.Uint16(id)), netip.AddrPortFrom(remote.Unmap(), binary.BigEndian.Uint16(id[2:]))})
			}
		}
	}
	return out, nil
}

// Destroy ends a connection: its process gets ECONNABORTED. It needs CAP_NET_ADMIN, and a kernel with
// CONFIG_INET_DIAG_DESTROY (else EOPNOTSUPP). ENOENT means that it has ended.
func Destroy(s Socket) error {
	_, err := ask(unix.SOCK_DESTROY, exactly(s), netlink.Acknowledge)
	return err
}

// User returns the user of the socket with these ends.
func User(address, peer string) (uid uint32, err error) {
	own, err := netip.ParseAddrPort(address)
	other, perr := netip.ParseAddrPort(peer)
	if err := errors.Join(err, perr); err != nil {
		return 0, err
	}
	answers, err := ask(unix.SOCK_DIAG_BY_FAMILY, exactly(Socket{own, other}), netlink.Acknowledge)
	if err == nil && (len(answers) == 0 || len(answers[0].Data) < answerUIDAt+4) {
		err = errors.New("no answer")
	}
	if err != nil {
		return 0, fmt.Errorf("look up the socket %s: %w", address, err)
	}
	return binary.NativeEndian.Uint32(answers[0].Data[answerUIDAt:]), nil
}

// Listening returns the ports with listening sockets. If the kernel does not list a family, err
// says why. The cost grows with the listening sockets only, unlike /proc/net/tcp.
func Listening() (map[uint16]bool, error) {
	ports := make(map[uint16]bool)
	var errs []error
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := ask(unix.SOCK_DIAG_BY_FAMILY, request(family, stateListen), netlink.Dump)
		errs = append(errs, err)
		for _, s := range sockets {
			if len(s.Data) >= answerIDAt+2 {
				ports[binary.BigEndian.Uint16(s.Data[answerIDAt:])] = true
			}
		}
	}
	return ports, errors.Join(errs...)
}
