package expr

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Bitwise is the kernel's bitwise expression: DREG = SREG & Mask ^ Xor, or a
// shift of 32-bit words. google/nftables has no shifts and leaves out the
// operation that libnftnl always sends.
type Bitwise struct {
	// Source and Dest are kernel register numbers, Len is in bytes.
	Source, Dest, Len uint32
	Op                BitwiseOp
	// Mask and Xor are those of BitwiseBool.
	Mask, Xor []byte
	// Shift is the number of bits of the shifts.
	Shift uint32
}

// BitwiseOp is an operation of Bitwise (enum nft_bitwise_ops).
type BitwiseOp uint32

// The operations.
const (
	BitwiseBool   BitwiseOp = 0
	BitwiseLshift BitwiseOp = 1
	BitwiseRshift BitwiseOp = 2
)

// Attributes of bitwise (enum nft_bitwise_attributes).
const (
	nftaBitwiseSreg = 1
	nftaBitwiseDreg = 2
	nftaBitwiseLen  = 3
	nftaBitwiseMask = 4
	nftaBitwiseXor  = 5
	nftaBitwiseOp   = 6
	nftaBitwiseData = 7
)

// Marshal is Expr's.
func (e *Bitwise) Marshal(uint8) ([]byte, error) {
	var b []byte
	b = AppendU32(b, nftaBitwiseSreg, e.Source)
	b = AppendU32(b, nftaBitwiseDreg, e.Dest)
	b = AppendU32(b, nftaBitwiseOp, uint32(e.Op))
	b = AppendU32(b, nftaBitwiseLen, e.Len)
	switch e.Op {
	case BitwiseBool:
		b = appendData(b, nftaBitwiseMask, e.Mask)
		b = appendData(b, nftaBitwiseXor, e.Xor)
	case BitwiseLshift, BitwiseRshift:
		b = appendData(b, nftaBitwiseData, binary.NativeEndian.AppendUint32(nil, e.Shift))
	default:
		return nil, fmt.Errorf("marshal bitwise: unknown operation %d", e.Op)
	}
	return marshalNamed("bitwise", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Bitwise) Unmarshal(data []byte) error {
	*e = Bitwise{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case nftaBitwiseSreg:
			e.Source, err = AttrU32(v)
		case nftaBitwiseDreg:
			e.Dest, err = AttrU32(v)
		case nftaBitwiseLen:
			e.Len, err = AttrU32(v)
		case nftaBitwiseOp:
			var op uint32
			op, err = AttrU32(v)
			e.Op = BitwiseOp(op)
		case nftaBitwiseMask:
			e.Mask, err = AttrData(v)
		case nftaBitwiseXor:
			e.Xor, err = AttrData(v)
		case nftaBitwiseData:
			var d []byte
			if d, err = AttrData(v); err == nil && len(d) == 4 {
				e.Shift = binary.NativeEndian.Uint32(d)
			}
		}
		return err
	})
}

// String is Expr's.
func (e *Bitwise) String() string {
	switch e.Op {
	case BitwiseLshift:
		return fmt.Sprintf("bitwise reg %d = ( reg %d << 0x%08x )", e.Dest, e.Source, e.Shift)
	case BitwiseRshift:
		return fmt.Sprintf("bitwise reg %d = ( reg %d >> 0x%08x )", e.Dest, e.Source, e.Shift)
	default:
		return fmt.Sprintf("bitwise reg %d = ( reg %d &%s ) ^%s", e.Dest, e.Source, DumpData(e.Mask), DumpData(e.Xor))
	}
}

func (e *Bitwise) setID() *uint32 { return nil }

// Attributes that are common to all expressions.
const (
	nftaExprName  = unix.NFTA_EXPR_NAME
	nftaExprData  = unix.NFTA_EXPR_DATA
	nftaDataValue = unix.NFTA_DATA_VALUE
)
