package statuspage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// asker names the user who asks, as far as the kernel knows the other end of the connection.
func asker(r *http.Request) string {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if uid, err := User(r.RemoteAddr, local.String()); err == nil {
			return fmt.Sprintf("user %d", uid)
		}
	}
	return "a user who is not known"
}

// Layout of struct inet_diag_req_v2 and struct inet_diag_msg (linux/inet_diag.h).
const (
	sockDiagByFamily = 20
	diagIDAt         = 8
	diagRequestLen   = diagIDAt + 48
	diagUserAt       = 4 + 48 + 12
)

// User returns the user of a TCP socket in this network namespace, by its own address and that of the other end.
func User(address, peer string) (uid uint32, err error) {
	own, err := netip.ParseAddrPort(address)
	other, perr := netip.ParseAddrPort(peer)
	if err := errors.Join(err, perr); err != nil {
		return 0, err
	}
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	b := make([]byte, diagRequestLen)
	b[0], b[1] = unix.AF_INET6, unix.IPPROTO_TCP
	if own.Addr().Unmap().Is4() {
		b[0] = unix.AF_INET
	}
	binary.NativeEndian.PutUint32(b[4:], ^uint32(0)) // any state
	id := b[diagIDAt:]
	binary.BigEndian.PutUint16(id, own.Port())
	binary.BigEndian.PutUint16(id[2:], other.Port())
	copy(id[4:20], own.Addr().Unmap().AsSlice())
	copy(id[20:36], other.Addr().Unmap().AsSlice())
	for i := 40; i < 48; i++ {
		id[i] = 0xff // INET_DIAG_NOCOOKIE
	}
	answers, err := conn.Execute(netlink.Message{Header: netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request | netlink.Acknowledge}, Data: b})
	if err != nil {
		return 0, fmt.Errorf("look up the socket %s: %w", address, err)
	}
	if len(answers) == 0 || len(answers[0].Data) < diagUserAt+4 {
		return 0, fmt.Errorf("look up the socket %s: no answer", address)
	}
	return binary.NativeEndian.Uint32(answers[0].Data[diagUserAt:]), nil
}
