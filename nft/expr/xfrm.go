package expr

import (
	"fmt"

	"github.com/weft-proxy/weft/nft/selector"
)

// Xfrm is the kernel's xfrm expression, of which google/nftables has none.
type Xfrm struct {
	Key uint32
	// Dir is 0 for in, 1 for out.
	Dir uint8
	// Spnum counts the states of a packet from 0.
	Spnum, Register uint32
}

// Attributes of xfrm (enum nft_xfrm_attributes).
const (
	nftaXfrmDreg  = 1
	nftaXfrmKey   = 2
	nftaXfrmDir   = 3
	nftaXfrmSpnum = 4
)

// Marshal is Expr's.
func (e *Xfrm) Marshal(uint8) ([]byte, error) {
	b := AppendU32(nil, nftaXfrmKey, e.Key)
	b = AppendAttr(b, nftaXfrmDir, []byte{e.Dir})
	b = AppendU32(b, nftaXfrmSpnum, e.Spnum)
	b = AppendU32(b, nftaXfrmDreg, e.Register)
	return marshalNamed("xfrm", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Xfrm) Unmarshal(data []byte) error {
	*e = Xfrm{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case nftaXfrmDreg:
			e.Register, err = AttrU32(v)
		case nftaXfrmKey:
			e.Key, err = AttrU32(v)
		case nftaXfrmDir:
			if len(v) != 1 {
				return ErrAttr
			}
			e.Dir = v[0]
		case nftaXfrmSpnum:
			e.Spnum, err = AttrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *Xfrm) String() string {
	dir := "in"
	if e.Dir == selector.XfrmDirection("out") {
		dir = "out"
	}
	return fmt.Sprintf("xfrm load %s %d %s => reg %d", dir, e.Spnum, selector.HostDumpName(selector.IPsecKeys[:], e.Key), e.Register)
}

func (e *Xfrm) setID() *uint32 { return nil }
