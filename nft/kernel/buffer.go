package kernel

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/attr"
)

// buffer holds the encoded messages of a batch.
type buffer struct {
	// seq is the sequence number of the first message.
	seq      uint32
	buf      []byte
	messages []message
	// op is the index of the op of the next message.
	op int
	// certain means that a message always changes the ruleset.
	certain bool
}

type message struct {
	// op is -1 for begin and end.
	op int
	// element is the index of the first element in the op's Elements, or -1.
	element int
	offset  int
}

// begin closes the last message. The begin and end of a batch have AF_UNSPEC and name the
// subsystem.
func (b *buffer) begin(typ, flags uint16, family nft.Family) {
	b.closeLast()
	m := message{op: b.op, element: -1, offset: len(b.buf)}
	resID := uint16(0)
	if typ == unix.NFNL_MSG_BATCH_BEGIN || typ == unix.NFNL_MSG_BATCH_END {
		resID, m.op = unix.NFNL_SUBSYS_NFTABLES, -1
	}
	seq := b.seq + uint32(len(b.messages))
	b.messages = append(b.messages, m)
	b.certain = b.certain || m.op >= 0 && changesAlways(typ)
	b.buf = appendHeader(b.buf, typ, unix.NLM_F_REQUEST|flags, seq, uint8(family), resID)
}

// Adding an existing table or element, destroying a missing element, and flushing an empty set or
// chain do not change the ruleset.
func changesAlways(typ uint16) bool {
	switch typ {
	case msgType(unix.NFT_MSG_NEWTABLE), msgType(unix.NFT_MSG_NEWSETELEM), msgType(unix.NFT_MSG_DELSETELEM), msgType(nftMsgDestroySetElem), msgType(unix.NFT_MSG_DELRULE):
		return false
	default:
		return true
	}
}

func (b *buffer) closeLast() {
	if n := len(b.messages); n > 0 {
		closeMessage(b.buf, b.messages[n-1].offset)
	}
}

func (b *buffer) open(msg int, flags uint16, table nft.TableID) {
	b.begin(msgType(msg), flags, table.Family)
	b.string(nftaTable, table.Name)
}

func (b *buffer) remove(msg int, table nft.TableID, nameAttr uint16, name string) {
	b.open(msg, 0, table)
	b.string(nameAttr, name)
}

func (b *buffer) changes() bool {
	return slices.ContainsFunc(b.messages, func(m message) bool { return m.op >= 0 })
}

func (b *buffer) end(message int) int {
	if message+1 < len(b.messages) {
		return b.messages[message+1].offset
	}
	return len(b.buf)
}

func (b *buffer) string(typ uint16, v string) { b.buf = attr.AppendString(b.buf, typ, v) }

func (b *buffer) bytes(typ uint16, v []byte) { b.buf = attr.AppendBytes(b.buf, typ, v) }

func (b *buffer) uint32(typ uint16, v uint32) { b.buf = attr.AppendUint32BE(b.buf, typ, v) }

func (b *buffer) uint64(typ uint16, v uint64) { b.buf = attr.AppendUint64BE(b.buf, typ, v) }

func (b *buffer) fields(f attr.Fields) (err error) {
	b.buf, err = f.Append(b.buf)
	return err
}
