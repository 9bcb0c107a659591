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
)

// request asks for sockets of unix.AF_INET or unix.AF_INET6.
func request(family uint8, states uint32) []byte {
	b := make([]byte, requestLen)
	b[0], b[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[4:], states)
	return b
}

func ask(request []byte, flags netlink.HeaderFlags) ([]netlink.Message, error) {
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Execute(netlink.Message{Header: netlink.Header{Type: unix.SOCK_DIAG_BY_FAMILY, Flags: netlink.Request | flags}, Data: request})
}

// User returns the user of the socket with these ends.
func User(address, peer string) (uid uint32, err error) {
	own, err := netip.ParseAddrPort(address)
	other, perr := netip.ParseAddrPort(peer)
	if err := errors.Join(err, perr); err != nil {
		return 0, err
	}
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
	answers, err := ask(b, netlink.Acknowledge)
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
		sockets, err := ask(request(family, stateListen), netlink.Dump)
		errs = append(errs, err)
		for _, s := range sockets {
			if len(s.Data) >= answerIDAt+2 {
				ports[binary.BigEndian.Uint16(s.Data[answerIDAt:])] = true
			}
		}
	}
	return ports, errors.Join(errs...)
}
