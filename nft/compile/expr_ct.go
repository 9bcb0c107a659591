package compile

import (
	"fmt"

	"golang.org/x/sys/unix"
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
	b = appendU32(b, unix.NFTA_CT_KEY, e.Key)
	if !e.Set {
		b = appendU32(b, unix.NFTA_CT_DREG, e.Register)
	}
	if e.Dir >= 0 {
		b = appendAttr(b, unix.NFTA_CT_DIRECTION, []byte{byte(e.Dir)})
	}
	if e.Set {
		b = appendU32(b, unix.NFTA_CT_SREG, e.Register)
	}
	return marshalNamed("ct", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *CT) Unmarshal(data []byte) error {
	*e = CT{Dir: noDirection}
	return eachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_CT_KEY:
			e.Key, err = attrU32(v)
		case unix.NFTA_CT_DREG:
			e.Register, err = attrU32(v)
		case unix.NFTA_CT_SREG:
			e.Register, err = attrU32(v)
			e.Set = true
		case unix.NFTA_CT_DIRECTION:
			if len(v) != 1 {
				return errAttr
			}
			e.Dir = int(v[0])
		}
		return err
	})
}

// String is Expr's.
func (e *CT) String() string {
	if e.Set {
		return fmt.Sprintf("ct set %s with reg %d", ctDumpName(e.Key), e.Register) + e.dumpDir()
	}
	return fmt.Sprintf("ct load %s => reg %d", ctDumpName(e.Key), e.Register) + e.dumpDir()
}

// dumpDir prints the direction.
func (e *CT) dumpDir() string {
	switch e.Dir {
	case directionOriginal:
		return " , dir original"
	case directionReply:
		return " , dir reply"
	default:
		return ""
	}
}

func (e *CT) setID() *uint32 { return nil }
