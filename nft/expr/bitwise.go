package expr

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/attr"
)

// Bitwise is Dest = (Source & Mask) ^ Xor, or a shift of 32-bit words. google/nftables has no
// shifts.
type Bitwise struct {
	// Len is in bytes.
	Source, Dest, Len uint32
	Op                BitwiseOp
	Mask, Xor         []byte
	Shift             uint32
}

// BitwiseOp is enum nft_bitwise_ops.
type BitwiseOp uint32

const (
	BitwiseBool   BitwiseOp = 0
	BitwiseLshift BitwiseOp = 1
	BitwiseRshift BitwiseOp = 2
)

const (
	nftaBitwiseOp   = 6
	nftaBitwiseData = 7
)

func (e *Bitwise) table(t *table) {
	t.name, t.format = "bitwise", "bitwise reg %[2]d = ( reg %[1]d &%[5]s ) ^%[6]s"
	switch e.Op {
	case BitwiseLshift:
		t.format = "bitwise reg %[2]d = ( reg %[1]d << 0x%08[7]x )"
	case BitwiseRshift:
		t.format = "bitwise reg %[2]d = ( reg %[1]d >> 0x%08[7]x )"
	}
	t.add(unix.NFTA_BITWISE_SREG, &e.Source)
	t.add(unix.NFTA_BITWISE_DREG, &e.Dest)
	t.add(nftaBitwiseOp, (*uint32)(&e.Op))
	t.add(unix.NFTA_BITWISE_LEN, &e.Len)
	t.addIf(e.Op == BitwiseBool, unix.NFTA_BITWISE_MASK, (*data)(&e.Mask), "")
	t.addIf(e.Op == BitwiseBool, unix.NFTA_BITWISE_XOR, (*data)(&e.Xor), "")
	t.addIf(e.Op != BitwiseBool, nftaBitwiseData, (*nativeData)(&e.Shift), "")
}

// nativeData has the machine's byte order.
type nativeData uint32

func (n *nativeData) AppendAttr(b []byte, typ uint16) ([]byte, error) {
	value := data(binary.NativeEndian.AppendUint32(nil, uint32(*n)))
	return value.AppendAttr(b, typ)
}

func (n *nativeData) ReadAttr(r *attr.Reader) error {
	value, _ := attr.Find(r.Bytes(), unix.NFTA_DATA_VALUE)
	*n = nativeData(value.Uint32NE())
	return value.Err()
}
