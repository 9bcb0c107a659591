package expr

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Masq is the kernel's masq expression. google/nftables marshals either ports
// or flags; nft(8) sends both.
type Masq struct {
	// MinPort and MaxPort are register numbers, 0 for none.
	MinPort, MaxPort uint32
	// Flags are NF_NAT_RANGE_*.
	Flags uint32
}

// Marshal is Expr's.
func (e *Masq) Marshal(uint8) ([]byte, error) {
	var b []byte
	if e.Flags != 0 {
		b = AppendU32(b, unix.NFTA_MASQ_FLAGS, e.Flags)
	}
	if e.MinPort != 0 {
		b = AppendU32(b, unix.NFTA_MASQ_REG_PROTO_MIN, e.MinPort)
	}
	if e.MaxPort != 0 {
		b = AppendU32(b, unix.NFTA_MASQ_REG_PROTO_MAX, e.MaxPort)
	}
	return marshalNamed("masq", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Masq) Unmarshal(data []byte) error {
	*e = Masq{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_MASQ_FLAGS:
			e.Flags, err = AttrU32(v)
		case unix.NFTA_MASQ_REG_PROTO_MIN:
			e.MinPort, err = AttrU32(v)
		case unix.NFTA_MASQ_REG_PROTO_MAX:
			e.MaxPort, err = AttrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *Masq) String() string {
	s := "masq"
	if e.MinPort != 0 {
		s += fmt.Sprintf(" proto_min reg %d", e.MinPort)
	}
	if e.MaxPort != 0 {
		s += fmt.Sprintf(" proto_max reg %d", e.MaxPort)
	}
	if e.Flags != 0 {
		s += fmt.Sprintf(" flags 0x%x", e.Flags)
	}
	return s
}

func (e *Masq) setID() *uint32 { return nil }
