package expr

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/selector"
)

// Exthdr is the kernel's exthdr expression: it loads a field of an extension
// of a header, writes it, or takes the whole extension out. google/nftables
// leaves out the flags that nft(8) sends with every load, and knows no write
// of a register beside them.
type Exthdr struct {
	Action ExthdrAction
	Op     selector.ExthdrOp
	// Type is the extension: a protocol number, an option's kind, a chunk's
	// type.
	Type uint8
	// Offset and Len are in bytes.
	Offset, Len uint32
	// Present asks whether there is such an extension, in place of its bytes.
	Present bool
	// Register is the destination of a load and the source of a write.
	Register uint32
}

// ExthdrAction says what Exthdr does.
type ExthdrAction uint8

// The actions.
const (
	ExthdrLoad ExthdrAction = iota
	ExthdrWrite
	ExthdrReset
)

// Attributes of exthdr (enum nft_exthdr_attributes).
const (
	nftaExthdrDreg   = 1
	nftaExthdrType   = 2
	nftaExthdrOffset = 3
	nftaExthdrLen    = 4
	nftaExthdrFlags  = 5
	nftaExthdrOp     = 6
	nftaExthdrSreg   = 7
)

// Marshal is Expr's.
func (e *Exthdr) Marshal(uint8) ([]byte, error) {
	b, at := openExpr(make([]byte, 0, 72), "exthdr")
	switch e.Action {
	case ExthdrLoad:
		b = AppendU32(b, nftaExthdrDreg, e.Register)
	case ExthdrWrite:
		b = AppendU32(b, nftaExthdrSreg, e.Register)
	case ExthdrReset:
	default:
		return nil, fmt.Errorf("marshal exthdr: unknown action %d", e.Action)
	}
	b = AppendAttr(b, nftaExthdrType, []byte{e.Type})
	if e.Action != ExthdrReset {
		b = AppendU32(b, nftaExthdrOffset, e.Offset)
		b = AppendU32(b, nftaExthdrLen, e.Len)
	}
	if e.Action == ExthdrLoad {
		flags := uint32(0)
		if e.Present {
			flags = unix.NFT_EXTHDR_F_PRESENT
		}
		b = AppendU32(b, nftaExthdrFlags, flags)
	}
	b = AppendU32(b, nftaExthdrOp, uint32(e.Op))
	return CloseAttr(b, at), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Exthdr) Unmarshal(data []byte) error {
	*e = Exthdr{Action: ExthdrReset}
	return EachAttr(data, func(typ uint16, v []byte) error {
		if typ == nftaExthdrType {
			if len(v) != 1 {
				return ErrAttr
			}
			e.Type = v[0]
			return nil
		}
		n, err := AttrU32(v)
		switch typ {
		case nftaExthdrDreg:
			e.Action, e.Register = ExthdrLoad, n
		case nftaExthdrSreg:
			e.Action, e.Register = ExthdrWrite, n
		case nftaExthdrOffset:
			e.Offset = n
		case nftaExthdrLen:
			e.Len = n
		case nftaExthdrFlags:
			e.Present = n&unix.NFT_EXTHDR_F_PRESENT != 0
		case nftaExthdrOp:
			e.Op = selector.ExthdrOp(n)
		default:
			return nil
		}
		return err
	})
}

// String is Expr's. libnftnl has no word for chunks of SCTP.
func (e *Exthdr) String() string {
	op := ""
	switch e.Op {
	case selector.ExthdrIPv6:
		op = "ipv6 "
	case selector.ExthdrTCP:
		op = "tcpopt "
	case selector.ExthdrIPv4:
		op = "ipv4 "
	}
	switch e.Action {
	case ExthdrWrite:
		return fmt.Sprintf("exthdr write %sreg %d => %db @ %d + %d", op, e.Register, e.Len, e.Type, e.Offset)
	case ExthdrReset:
		return fmt.Sprintf("exthdr reset %s%d", op, e.Type)
	}
	present := ""
	if e.Present {
		present = " present"
	}
	return fmt.Sprintf("exthdr load %s%db @ %d + %d%s => reg %d", op, e.Len, e.Type, e.Offset, present, e.Register)
}

func (e *Exthdr) setID() *uint32 { return nil }
