package scale

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// floor is the wall time of a netlink socket and the kernel alone for a map of endpoints.
type floor struct {
	// all is one transaction with an element for each Service and each endpoint; one is the median of
	// transactions that replace one element.
	all, one time.Duration
}

func measureFloor(s size) (floor, error) {
	n, err := lab.NewNamespace("floor")
	if err != nil {
		return floor{}, err
	}
	defer n.Close()
	var b bare
	if err := n.Do(b.open); err != nil {
		return floor{}, fmt.Errorf("open netlink: %w", err)
	}
	defer unix.Close(b.fd)
	elements := s.services + s.total()
	batch := slices.Concat(batchEdge(unix.NFNL_MSG_BATCH_BEGIN), newTable(), newMap())
	const perMessage = 500 // an attribute has 64 KiB at most
	for first := 0; first < elements; first += perMessage {
		last := min(first+perMessage, elements)
		batch = append(batch, elementsMessage(unix.NFT_MSG_NEWSETELEM, first, last, 0, last == elements)...)
	}
	var f floor
	if f.all, err = b.send(append(batch, batchEdge(unix.NFNL_MSG_BATCH_END)...)); err != nil {
		return floor{}, fmt.Errorf("commit %d elements: %w", elements, err)
	}
	const turns = 200
	var took []time.Duration
	for turn := range turns {
		key := turn * 7919 % elements
		d, err := b.send(slices.Concat(batchEdge(unix.NFNL_MSG_BATCH_BEGIN),
			elementsMessage(unix.NFT_MSG_DELSETELEM, key, key+1, 0, false),
			elementsMessage(unix.NFT_MSG_NEWSETELEM, key, key+1, turn+1, true),
			batchEdge(unix.NFNL_MSG_BATCH_END)))
		if err != nil {
			return floor{}, fmt.Errorf("replace one element: %w", err)
		}
		took = append(took, d)
	}
	f.one = quantile(took, 0.5)
	return f, nil
}

// bare is a netlink socket that sends bytes and reads the acknowledgement.
type bare struct {
	fd  int
	buf [64 << 10]byte
}

func (b *bare) open() error {
	var err error
	if b.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER); err != nil {
		return err
	}
	return errors.Join(
		unix.SetsockoptInt(b.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 64<<20),
		unix.Bind(b.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}),
	)
}

// The last element message of a batch asks for an acknowledgement.
func (b *bare) send(batch []byte) (time.Duration, error) {
	start := time.Now()
	if err := unix.Sendto(b.fd, batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	n, _, err := unix.Recvfrom(b.fd, b.buf[:], 0)
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	if n < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(b.buf[4:]) != unix.NLMSG_ERROR {
		return 0, errors.New("the kernel answered something else than an acknowledgement")
	}
	if errno := int32(binary.NativeEndian.Uint32(b.buf[unix.NLMSG_HDRLEN:])); errno != 0 {
		return 0, unix.Errno(-errno)
	}
	return took, nil
}

const (
	floorTable = "floor"
	floorMap   = "endpoints"
	// A key is the numbers of a service and an endpoint; a value is an address and a port. Each part
	// has four bytes.
	keyLength, valueLength = 8, 8
)

func newTable() []byte {
	return message(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, unix.NFPROTO_IPV4, text(unix.NFTA_TABLE_NAME, floorTable))
}

func newMap() []byte {
	return message(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE, unix.NFPROTO_IPV4,
		text(unix.NFTA_SET_TABLE, floorTable), text(unix.NFTA_SET_NAME, floorMap), number(unix.NFTA_SET_ID, 1),
		number(unix.NFTA_SET_FLAGS, unix.NFT_SET_MAP),
		number(unix.NFTA_SET_KEY_TYPE, 0), number(unix.NFTA_SET_KEY_LEN, keyLength),
		number(unix.NFTA_SET_DATA_TYPE, 0), number(unix.NFTA_SET_DATA_LEN, valueLength))
}

func elementsMessage(kind uint16, first, last, value int, acknowledge bool) []byte {
	var list []byte
	for i := first; i < last; i++ {
		key := binary.BigEndian.AppendUint32(nil, uint32(i/10))
		key = binary.BigEndian.AppendUint32(key, uint32(i%10))
		element := attribute(unix.NFTA_SET_ELEM_KEY|unix.NLA_F_NESTED, attribute(unix.NFTA_DATA_VALUE, key))
		if kind == unix.NFT_MSG_NEWSETELEM {
			data := binary.BigEndian.AppendUint32(nil, uint32(10<<24+i+value<<20))
			data = binary.BigEndian.AppendUint32(data, targetPort<<16)
			element = append(element, attribute(unix.NFTA_SET_ELEM_DATA|unix.NLA_F_NESTED, attribute(unix.NFTA_DATA_VALUE, data))...)
		}
		list = append(list, attribute(unix.NFTA_LIST_ELEM|unix.NLA_F_NESTED, element)...)
	}
	var flags uint16
	if kind == unix.NFT_MSG_NEWSETELEM {
		flags = unix.NLM_F_CREATE
	}
	if acknowledge {
		flags |= unix.NLM_F_ACK
	}
	return message(unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags, unix.NFPROTO_IPV4,
		text(unix.NFTA_SET_ELEM_LIST_TABLE, floorTable), text(unix.NFTA_SET_ELEM_LIST_SET, floorMap), number(unix.NFTA_SET_ELEM_LIST_SET_ID, 1),
		attribute(unix.NFTA_SET_ELEM_LIST_ELEMENTS|unix.NLA_F_NESTED, list))
}

func batchEdge(kind uint16) []byte {
	b := message(kind, 0, unix.AF_UNSPEC)
	binary.BigEndian.PutUint16(b[unix.NLMSG_HDRLEN+2:], unix.NFNL_SUBSYS_NFTABLES) // res_id
	return b
}

func message(kind, flags uint16, family byte, attributes ...[]byte) []byte {
	body := slices.Concat(attributes...)
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+4+len(body)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags|unix.NLM_F_REQUEST)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // sequence, port
	b = append(b, family, unix.NFNETLINK_V0, 0, 0)
	return append(b, body...)
}

func attribute(kind uint16, payload []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(payload)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, payload...)
	return append(b, make([]byte, -len(payload)&3)...)
}

func text(kind uint16, s string) []byte { return attribute(kind, append([]byte(s), 0)) }

func number(kind uint16, n uint32) []byte {
	return attribute(kind, binary.BigEndian.AppendUint32(nil, n))
}
