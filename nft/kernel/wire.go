package kernel

import (
	"encoding/binary"
	"math"

	"golang.org/x/sys/unix"
)

// Constants of linux/netfilter/nf_tables.h that golang.org/x/sys/unix lacks.
const (
	// nftMsgDestroySetElem deletes elements as NFT_MSG_DELSETELEM does, and takes
	// those for deleted that do not exist (Linux 6.3).
	nftMsgDestroySetElem = 0x1e

	nftaTableFlags    = unix.NFTA_TABLE_FLAGS
	nftaTableUserData = 0x6
	nftaTableOwner    = 0x7

	nftaObjUserData = 0x8

	nftaFlowtableTable        = 0x1
	nftaFlowtableName         = 0x2
	nftaFlowtableHook         = 0x3
	nftaFlowtableFlags        = 0x7
	nftaFlowtableHookNum      = 0x1
	nftaFlowtableHookPriority = 0x2
	nftaFlowtableHookDevs     = 0x3
	nftaDeviceName            = 0x1
	nftaHookDevs              = 0x4

	chainOffload = 0x2 // NFT_CHAIN_HW_OFFLOAD

	nftaChainUserData = 0xc
	nftaChainFlags    = 0xa
	nftaChainID       = 0xb

	nftaRulePositionID = 0xa

	nftaSetHandle     = 0x10
	nftaSetDescConcat = 0x2
	nftaSetFieldLen   = 0x1

	nftaSetExpr         = 0x11
	nftaSetExpressions  = 0x12
	nftaSetElemKeyEnd   = 0xa
	nftaSetElemExprs    = 0xb
	setElemCatchall     = 0x2 // NFT_SET_ELEM_CATCHALL
	setElemIntervalEnd  = unix.NFT_SET_ELEM_INTERVAL_END
	setConcat           = 0x80 // NFT_SET_CONCAT
	tableFlagOwner      = 0x2  // NFT_TABLE_F_OWNER, Linux 5.12
	tableFlagPersist    = 0x4  // NFT_TABLE_F_PERSIST, Linux 6.9
	tableFlagsWhenOwned = tableFlagOwner | tableFlagPersist
)

// Sizes of netlink.
const (
	headerLen = unix.NLMSG_HDRLEN
	// genLen is the length of struct nfgenmsg.
	genLen  = 4
	attrLen = unix.NLA_HDRLEN
	// maxAttr is the greatest length of an attribute with its header.
	maxAttr = math.MaxUint16
	// attrTypeMask leaves out NLA_F_NESTED and NLA_F_NET_BYTEORDER.
	attrTypeMask = 0x3fff
)

// message types

// msgType returns the netlink message type of an NFT_MSG_* number.
func msgType(m int) uint16 { return unix.NFNL_SUBSYS_NFTABLES<<8 | uint16(m) }

// appendHeader appends a netlink header without its length and a struct
// nfgenmsg. closeMessage puts the length in.
func appendHeader(b []byte, typ, flags uint16, seq uint32, family uint8, resID uint16) []byte {
	b = append(b, 0, 0, 0, 0)
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, seq)
	b = append(b, 0, 0, 0, 0, family, unix.NFNETLINK_V0)
	return binary.BigEndian.AppendUint16(b, resID)
}

// closeMessage ends the message that began at offset at.
func closeMessage(b []byte, at int) {
	binary.NativeEndian.PutUint32(b[at:], uint32(len(b)-at))
}

// appendAttrHeader appends the header of an attribute whose payload has n bytes.
func appendAttrHeader(b []byte, typ uint16, n int) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(attrLen+n))
	return binary.NativeEndian.AppendUint16(b, typ)
}

// pad aligns the buffer to four bytes.
func pad(b []byte) []byte {
	switch len(b) & 3 {
	case 1:
		return append(b, 0, 0, 0)
	case 2:
		return append(b, 0, 0)
	case 3:
		return append(b, 0)
	default:
		return b
	}
}

// appendBytes appends an attribute.
func appendBytes[T ~string | ~[]byte](b []byte, typ uint16, v T) []byte {
	b = appendAttrHeader(b, typ, len(v))
	return pad(append(b, v...))
}

// appendString appends an attribute with a string that ends in NUL.
func appendString(b []byte, typ uint16, s string) []byte {
	b = appendAttrHeader(b, typ, len(s)+1)
	b = append(b, s...)
	return pad(append(b, 0))
}

// appendUint32 appends an attribute with a number in network byte order, as
// all numbers of nf_tables are.
func appendUint32(b []byte, typ uint16, v uint32) []byte {
	return binary.BigEndian.AppendUint32(appendAttrHeader(b, typ, 4), v)
}

// appendUint64 is appendUint32 for eight bytes.
func appendUint64(b []byte, typ uint16, v uint64) []byte {
	return binary.BigEndian.AppendUint64(appendAttrHeader(b, typ, 8), v)
}

// openNest appends the header of a nested attribute; closeNest gives it its
// length.
func openNest(b []byte, typ uint16) (out []byte, at int) {
	return appendAttrHeader(b, typ|unix.NLA_F_NESTED, 0), len(b)
}

// closeNest ends the nested attribute that began at offset at, and reports
// whether its length fits into its header.
func closeNest(b []byte, at int) bool {
	n := len(b) - at
	binary.NativeEndian.PutUint16(b[at:], uint16(n))
	return n <= maxAttr
}

// header is a decoded netlink header.
type header struct {
	length uint32
	typ    uint16
	flags  uint16
	seq    uint32
	portID uint32
}

// nextMessage cuts the first message off b: its header, its payload and the
// rest. ok is false at the end of b and where the header is malformed.
func nextMessage(b []byte) (h header, payload, rest []byte, ok bool) {
	if len(b) < headerLen {
		return header{}, nil, nil, false
	}
	h = header{
		length: binary.NativeEndian.Uint32(b),
		typ:    binary.NativeEndian.Uint16(b[4:]),
		flags:  binary.NativeEndian.Uint16(b[6:]),
		seq:    binary.NativeEndian.Uint32(b[8:]),
		portID: binary.NativeEndian.Uint32(b[12:]),
	}
	if h.length < headerLen || uint64(h.length) > uint64(len(b)) {
		return header{}, nil, nil, false
	}
	next := min((int(h.length)+3)&^3, len(b))
	return h, b[headerLen:h.length], b[next:], true
}

// attrs iterates over attributes. The zero value has none.
type attrs struct {
	rest []byte
	// typ and value are the current attribute's, without the flags of the type.
	typ   uint16
	value []byte
	// malformed is true where a length pointed out of the buffer.
	malformed bool
}

// parseAttrs starts an iteration over the attributes in b.
func parseAttrs(b []byte) attrs { return attrs{rest: b} }

// next moves to the next attribute.
func (a *attrs) next() bool {
	if len(a.rest) == 0 {
		return false
	}
	if len(a.rest) < attrLen {
		a.malformed = true
		return false
	}
	n := int(binary.NativeEndian.Uint16(a.rest))
	if n < attrLen || n > len(a.rest) {
		a.malformed = true
		return false
	}
	a.typ = binary.NativeEndian.Uint16(a.rest[2:]) & attrTypeMask
	a.value = a.rest[attrLen:n]
	a.rest = a.rest[min((n+3)&^3, len(a.rest)):]
	return true
}

// err returns ErrMalformed where the iteration ended early.
func (a *attrs) err() error {
	if a.malformed {
		return ErrMalformed
	}
	return nil
}

// uint32 returns the current attribute's number.
func (a *attrs) uint32() uint32 {
	if len(a.value) != 4 {
		a.malformed = true
		return 0
	}
	return binary.BigEndian.Uint32(a.value)
}

// uint64 is uint32 for eight bytes.
func (a *attrs) uint64() uint64 {
	if len(a.value) != 8 {
		a.malformed = true
		return 0
	}
	return binary.BigEndian.Uint64(a.value)
}

// string returns the current attribute's string without the NUL at its end.
func (a *attrs) string() string { return string(trimNUL(a.value)) }

// trimNUL cuts b at its first NUL.
func trimNUL(b []byte) []byte {
	for i, c := range b {
		if c == 0 {
			return b[:i]
		}
	}
	return b
}
