package expr

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Dup is the kernel's dup expression. google/nftables knows whether registers
// are set by two more fields.
type Dup struct {
	// Addr and Device are register numbers, 0 for none.
	Addr, Device uint32
}

// Marshal is Expr's.
func (e *Dup) Marshal(uint8) ([]byte, error) {
	var b []byte
	if e.Addr != 0 {
		b = AppendU32(b, unix.NFTA_DUP_SREG_ADDR, e.Addr)
	}
	if e.Device != 0 {
		b = AppendU32(b, unix.NFTA_DUP_SREG_DEV, e.Device)
	}
	return marshalNamed("dup", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Dup) Unmarshal(data []byte) error {
	*e = Dup{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_DUP_SREG_ADDR:
			e.Addr, err = AttrU32(v)
		case unix.NFTA_DUP_SREG_DEV:
			e.Device, err = AttrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *Dup) String() string {
	s := "dup"
	if e.Addr != 0 {
		s += fmt.Sprintf(" sreg_addr %d", e.Addr)
	}
	if e.Device != 0 {
		s += fmt.Sprintf(" sreg_dev %d", e.Device)
	}
	return s
}

func (e *Dup) setID() *uint32 { return nil }
