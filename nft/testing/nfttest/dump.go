package nfttest

import (
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Dump returns the attributes of each reply to a request of nf_tables.
func (ns *NS) Dump(t testing.TB, family uint8, msg uint16, attrs []netlink.Attribute) [][]byte {
	t.Helper()
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{NetNS: ns.FD()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		t.Fatal(err)
	}
	replies, err := conn.Execute(netlink.Message{
		Header: netlink.Header{
			Type:  netlink.HeaderType(unix.NFNL_SUBSYS_NFTABLES<<8 | msg),
			Flags: netlink.Request | netlink.Dump,
		},
		Data: append([]byte{family, 0, 0, 0}, body...),
	})
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]byte, len(replies))
	for i, m := range replies {
		out[i] = m.Data[4:]
	}
	return out
}
