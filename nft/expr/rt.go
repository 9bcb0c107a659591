package expr

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/selector"
)

// Rt is the kernel's rt expression. google/nftables marshals its attributes in
// another order.
type Rt struct{ Key, Register uint32 }

// Marshal is Expr's.
func (e *Rt) Marshal(uint8) ([]byte, error) {
	b := AppendU32(nil, unix.NFTA_RT_KEY, e.Key)
	b = AppendU32(b, unix.NFTA_RT_DREG, e.Register)
	return marshalNamed("rt", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Rt) Unmarshal(data []byte) error {
	*e = Rt{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_RT_KEY:
			e.Key, err = AttrU32(v)
		case unix.NFTA_RT_DREG:
			e.Register, err = AttrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *Rt) String() string {
	return fmt.Sprintf("rt load %s => reg %d", selector.HostDumpName(selector.RtKeys[:], e.Key), e.Register)
}

func (e *Rt) setID() *uint32 { return nil }
