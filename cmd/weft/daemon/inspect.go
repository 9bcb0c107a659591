package daemon

import (
	"encoding/binary"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/lint"
)

// kubeletPort is the port of the kubelet, if it is not configured otherwise.
const kubeletPort = 10250

// needs returns what the node must be able to send and receive: SSH and the kubelet if something listens on
// their ports, and the API server if there is a kubelet.
func needs() []lint.Need {
	listens := make(map[uint16]bool)
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		// Without sock_diag in the kernel fewer needs are known.
		_ = listening(family, listens)
	}
	return slices.DeleteFunc(slices.Clone(lint.NodeNeeds), func(n lint.Need) bool {
		return !n.Client && !listens[n.Port] || n.Client && !listens[kubeletPort]
	})
}

// listening adds the TCP ports on which something listens. It asks sock_diag for these sockets alone
// (sock_diag(7)): /proc/net/tcp walks the table of all others for 6 ms, even if it is empty.
func listening(family uint8, ports map[uint16]bool) error {
	const (
		stateListen = 10 // TCP_LISTEN of net/tcp_states.h
		requestLen  = 56 // struct inet_diag_req_v2
		portAt      = 4  // idiag_sport of struct inet_diag_msg
	)
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	b := make([]byte, requestLen)
	b[0], b[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[4:], 1<<stateListen)
	sockets, err := conn.Execute(netlink.Message{Header: netlink.Header{Type: unix.SOCK_DIAG_BY_FAMILY, Flags: netlink.Request | netlink.Dump}, Data: b})
	for _, s := range sockets {
		if len(s.Data) >= portAt+2 {
			ports[binary.BigEndian.Uint16(s.Data[portAt:])] = true
		}
	}
	return err
}
