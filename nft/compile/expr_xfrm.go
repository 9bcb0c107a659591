package compile

import "fmt"

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
	b := appendU32(nil, nftaXfrmKey, e.Key)
	b = appendAttr(b, nftaXfrmDir, []byte{e.Dir})
	b = appendU32(b, nftaXfrmSpnum, e.Spnum)
	b = appendU32(b, nftaXfrmDreg, e.Register)
	return marshalNamed("xfrm", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Xfrm) Unmarshal(data []byte) error {
	*e = Xfrm{}
	return eachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case nftaXfrmDreg:
			e.Register, err = attrU32(v)
		case nftaXfrmKey:
			e.Key, err = attrU32(v)
		case nftaXfrmDir:
			if len(v) != 1 {
				return errAttr
			}
			e.Dir = v[0]
		case nftaXfrmSpnum:
			e.Spnum, err = attrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *Xfrm) String() string {
	dir := "in"
	if e.Dir == xfrmDirection("out") {
		dir = "out"
	}
	return fmt.Sprintf("xfrm load %s %d %s => reg %d", dir, e.Spnum, hostDumpName(ipsecSelectors[:], e.Key), e.Register)
}

func (e *Xfrm) setID() *uint32 { return nil }
