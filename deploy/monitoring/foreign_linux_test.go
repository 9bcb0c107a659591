package monitoring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// owner is the flag NFT_TABLE_F_OWNER: the kernel rejects every change of the table by others, and
// removes it with its owner's socket.
const owner = 2

// userData is NFTA_TABLE_USERDATA.
const userData = 6

// foreign is a program beside weft that makes tables of the name weft.
type foreign struct {
	socket int
	seq    uint32
}

func newForeign(t *testing.T) *foreign {
	t.Helper()
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err == nil {
		err = unix.Bind(socket, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err != nil {
		t.Fatal(err)
	}
	f := &foreign{socket: socket}
	t.Cleanup(f.end)
	return f
}

// The kernel removes the program's tables at its end.
func (f *foreign) end() {
	if f.socket >= 0 {
		_ = unix.Close(f.socket)
	}
	f.socket = -1
}

// message is of nf_tables, or the begin or end of a batch.
func (f *foreign) message(kind, flags uint16, family uint8, resource uint16, attributes ...[]byte) []byte {
	f.seq++
	b := make([]byte, unix.SizeofNlMsghdr, 256)
	b = append(b, family, unix.NFNETLINK_V0)
	b = binary.BigEndian.AppendUint16(b, resource)
	for _, a := range attributes {
		b = append(b, a...)
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b))) //nolint:gosec // it is short
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint16(b[6:], flags|unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(b[8:], f.seq)
	return b
}

// with padding
func attribute(kind uint16, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value))) //nolint:gosec // it is short
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

func (f *foreign) table(kind, flags uint16, attributes ...[]byte) []byte {
	name := attribute(unix.NFTA_TABLE_NAME, []byte("weft\x00"))
	return f.message(unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags, unix.NFPROTO_IPV6, 0, append([][]byte{name}, attributes...)...)
}

// send returns the answer to the last message.
func (f *foreign) send(messages ...[]byte) ([]byte, error) {
	var all []byte
	for _, m := range messages {
		all = append(all, m...)
	}
	if err := unix.Sendto(f.socket, all, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	b := make([]byte, 4096)
	n, _, err := unix.Recvfrom(f.socket, b, 0)
	if err != nil {
		return nil, fmt.Errorf("receive: %w", err)
	}
	if n < 20 {
		return nil, errors.New("receive: the answer is cut off")
	}
	if binary.NativeEndian.Uint16(b[4:]) == unix.NLMSG_ERROR {
		if errno := -int32(binary.NativeEndian.Uint32(b[16:])); errno != 0 { //nolint:gosec // an errno
			return nil, unix.Errno(errno)
		}
	}
	return b[:n], nil
}

// replace replaces the table ip6 weft, if it exists, in one transaction, so that weft never sees it
// missing.
func (f *foreign) replace(t *testing.T, flags uint32, data []byte) {
	t.Helper()
	batch := [][]byte{f.message(unix.NFNL_MSG_BATCH_BEGIN, 0, 0, unix.NFNL_SUBSYS_NFTABLES)}
	if _, err := f.send(f.table(unix.NFT_MSG_GETTABLE, 0)); err == nil {
		batch = append(batch, f.table(unix.NFT_MSG_DELTABLE, 0))
	}
	attributes := [][]byte{attribute(unix.NFTA_TABLE_FLAGS, binary.BigEndian.AppendUint32(nil, flags))}
	if data != nil {
		attributes = append(attributes, attribute(userData, data))
	}
	batch = append(batch, f.table(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE|unix.NLM_F_ACK, attributes...), f.message(unix.NFNL_MSG_BATCH_END, 0, 0, unix.NFNL_SUBSYS_NFTABLES))
	if _, err := f.send(batch...); err != nil {
		t.Fatalf("make the table ip6 weft: %v", err)
	}
}

// mark returns weft's mark of its table ip6 weft, by which weft recognizes the table.
func (f *foreign) mark(t *testing.T) []byte {
	t.Helper()
	answer, err := f.send(f.table(unix.NFT_MSG_GETTABLE, 0))
	if err != nil {
		t.Fatalf("read the table ip6 weft: %v", err)
	}
	for b := answer[unix.SizeofNlMsghdr+4:]; len(b) >= 4; {
		length := int(binary.NativeEndian.Uint16(b))
		if length < 4 || length > len(b) {
			break
		}
		if binary.NativeEndian.Uint16(b[2:]) == userData {
			return b[4:length]
		}
		b = b[min(len(b), (length+3)&^3):]
	}
	t.Fatal("the table ip6 weft does not have weft's mark")
	return nil
}
