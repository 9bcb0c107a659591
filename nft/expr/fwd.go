package expr

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Fwd is the kernel's fwd expression, which google/nftables does not have.
type Fwd struct {
	// Device and Addr are register numbers; Addr is 0 for none.
	Device, Addr uint32
	// Family is NFPROTO_IPV4 or NFPROTO_IPV6 with an Addr, else 0.
	Family uint32
}

// Attributes of fwd that golang.org/x/sys does not have (enum
// nft_fwd_attributes).
const (
	nftaFwdSregAddr = 2
	nftaFwdNFProto  = 3
)

// Marshal is Expr's.
func (e *Fwd) Marshal(uint8) ([]byte, error) {
	b := AppendU32(nil, unix.NFTA_FWD_SREG_DEV, e.Device)
	if e.Addr != 0 {
		b = AppendU32(b, nftaFwdSregAddr, e.Addr)
	}
	if e.Family != 0 {
		b = AppendU32(b, nftaFwdNFProto, e.Family)
	}
	return marshalNamed("fwd", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Fwd) Unmarshal(data []byte) error {
	*e = Fwd{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_FWD_SREG_DEV:
			e.Device, err = AttrU32(v)
		case nftaFwdSregAddr:
			e.Addr, err = AttrU32(v)
		case nftaFwdNFProto:
			e.Family, err = AttrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *Fwd) String() string {
	s := fmt.Sprintf("fwd sreg_dev %d", e.Device)
	if e.Addr != 0 {
		s += fmt.Sprintf(" sreg_addr %d", e.Addr)
	}
	if e.Family != 0 {
		s += fmt.Sprintf(" nfproto %d", e.Family)
	}
	return s
}

func (e *Fwd) setID() *uint32 { return nil }
