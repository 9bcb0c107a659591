package kernel

import (
	"encoding/binary"

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
	genLen = 4
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
