package kernel

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
)

const (
	headerLen = unix.NLMSG_HDRLEN
	// struct nfgenmsg
	genLen = 4
)

// Constants of linux/netfilter/nf_tables.h that golang.org/x/sys/unix lacks.
const (
	// Linux 6.3
	nftMsgDestroySetElem = 0x1e

	nftaTableUserData = 0x6
	nftaTableOwner    = 0x7

	nftaChainFlags    = 0xa
	nftaChainUserData = 0xc
	nftaHookDevs      = 0x4
	nftaDeviceName    = 0x1
	chainOffload      = 0x2 // NFT_CHAIN_HW_OFFLOAD

	nftaRulePositionID = 0xa

	nftaSetDescConcat  = 0x2
	nftaSetFieldLen    = 0x1
	nftaSetHandle      = 0x10
	nftaSetExpr        = 0x11
	nftaSetExpressions = 0x12
	setConcat          = 0x80 // NFT_SET_CONCAT

	nftaSetElemKeyEnd  = 0xa
	nftaSetElemExprs   = 0xb
	setElemCatchall    = 0x2 // NFT_SET_ELEM_CATCHALL
	setElemIntervalEnd = unix.NFT_SET_ELEM_INTERVAL_END

	nftaObjHandle   = 0x6
	nftaObjUserData = 0x8

	nftaFlowtableName         = 0x2
	nftaFlowtableHook         = 0x3
	nftaFlowtableHandle       = 0x5
	nftaFlowtableFlags        = 0x7
	nftaFlowtableHookNum      = 0x1
	nftaFlowtableHookPriority = 0x2
	nftaFlowtableHookDevs     = 0x3

	tableFlagOwner      = 0x2 // NFT_TABLE_F_OWNER, Linux 5.12
	tableFlagPersist    = 0x4 // NFT_TABLE_F_PERSIST, Linux 6.9
	tableFlagsWhenOwned = tableFlagOwner | tableFlagPersist
)

// nftaTable is the same number in all messages: NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE,
// NFTA_SET_TABLE and so on.
const nftaTable = 0x1

func msgType(m int) uint16 { return unix.NFNL_SUBSYS_NFTABLES<<8 | uint16(m) }

// The length is 0 until closeMessage.
func appendHeader(b []byte, typ, flags uint16, seq uint32, family uint8, resID uint16) []byte {
	b = append(b, 0, 0, 0, 0)
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, seq)
	b = append(b, 0, 0, 0, 0, family, unix.NFNETLINK_V0)
	return binary.BigEndian.AppendUint16(b, resID)
}

func closeMessage(b []byte, at int) {
	binary.NativeEndian.PutUint32(b[at:], uint32(len(b)-at))
}

type header struct {
	length uint32
	typ    uint16
	flags  uint16
	seq    uint32
	portID uint32
}

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

type reply struct {
	family nft.Family
	attrs  []byte
}

func parseReply(payload []byte) (reply, error) {
	if len(payload) < genLen {
		return reply{}, ErrMalformed
	}
	return reply{family: nft.Family(payload[0]), attrs: payload[genLen:]}, nil
}

func (m reply) table() (id nft.TableID, ok bool) {
	r, ok := attr.Find(m.attrs, nftaTable)
	if !ok {
		return nft.TableID{}, false
	}
	return nft.TableID{Family: m.family, Name: r.Text()}, true
}
