package expr

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/selector"
)

// CT is the kernel's ct expression. google/nftables marshals the direction in
// four bytes where the kernel reads one, and never for the address keys that
// name their protocol.
type CT struct {
	Key uint32
	// Register is the destination, or the source when Set is true.
	Register uint32
	Set      bool
	// Dir is -1 for none, 0 for original, 1 for reply.
	Dir int
}

// Marshal is Expr's.
func (e *CT) Marshal(uint8) ([]byte, error) {
	var b []byte
	b = AppendU32(b, unix.NFTA_CT_KEY, e.Key)
	if !e.Set {
		b = AppendU32(b, unix.NFTA_CT_DREG, e.Register)
	}
	if e.Dir >= 0 {
		b = AppendAttr(b, unix.NFTA_CT_DIRECTION, []byte{byte(e.Dir)})
	}
	if e.Set {
		b = AppendU32(b, unix.NFTA_CT_SREG, e.Register)
	}
	return marshalNamed("ct", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *CT) Unmarshal(data []byte) error {
	*e = CT{Dir: selector.NoDirection}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_CT_KEY:
			e.Key, err = AttrU32(v)
		case unix.NFTA_CT_DREG:
			e.Register, err = AttrU32(v)
		case unix.NFTA_CT_SREG:
			e.Register, err = AttrU32(v)
			e.Set = true
		case unix.NFTA_CT_DIRECTION:
			if len(v) != 1 {
				return ErrAttr
			}
			e.Dir = int(v[0])
		}
		return err
	})
}

// String is Expr's.
func (e *CT) String() string {
	if e.Set {
		return fmt.Sprintf("ct set %s with reg %d", selector.CTDumpName(e.Key), e.Register) + e.dumpDir()
	}
	return fmt.Sprintf("ct load %s => reg %d", selector.CTDumpName(e.Key), e.Register) + e.dumpDir()
}

// dumpDir prints the direction.
func (e *CT) dumpDir() string {
	switch e.Dir {
	case selector.DirectionOriginal:
		return " , dir original"
	case selector.DirectionReply:
		return " , dir reply"
	default:
		return ""
	}
}

func (e *CT) setID() *uint32 { return nil }
