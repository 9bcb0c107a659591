package expr

import "fmt"

// Bitwise is the kernel's bitwise expression: Dest = Source & Mask ^ Xor, or a
// shift of 32-bit words. google/nftables has no shifts and leaves out the
// operation, which libnftnl always sends.
type Bitwise struct {
	// Source and Dest are register numbers, Len is in bytes.
	Source, Dest, Len uint32
	Op                BitwiseOp
	// Mask and Xor are the operands of BitwiseBool.
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

// table is Expr's.
func (e *Bitwise) table() table {
	return table{"bitwise", []attribute{
		{nftaBitwiseSreg, &e.Source, always},
		{nftaBitwiseDreg, &e.Dest, always},
		{nftaBitwiseOp, (*uint32)(&e.Op), always},
		{nftaBitwiseLen, &e.Len, always},
		{nftaBitwiseMask, &e.Mask, e.Op == BitwiseBool},
		{nftaBitwiseXor, &e.Xor, e.Op == BitwiseBool},
		{nftaBitwiseData, (*nativeData)(&e.Shift), e.Op != BitwiseBool},
	}}
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
