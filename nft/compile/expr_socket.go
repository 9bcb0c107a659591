package compile

import "fmt"

// Socket is the kernel's socket expression.
type Socket struct{ Key, Level, Register uint32 }

// Attributes of socket (enum nft_socket_attributes).
const (
	nftaSocketKey   = 1
	nftaSocketDreg  = 2
	nftaSocketLevel = 3
)

// Marshal is Expr's.
func (e *Socket) Marshal(uint8) ([]byte, error) {
	b := appendU32(nil, nftaSocketKey, e.Key)
	b = appendU32(b, nftaSocketDreg, e.Register)
	b = appendU32(b, nftaSocketLevel, e.Level)
	return marshalNamed("socket", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Socket) Unmarshal(data []byte) error {
	*e = Socket{}
	return eachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case nftaSocketKey:
			e.Key, err = attrU32(v)
		case nftaSocketDreg:
			e.Register, err = attrU32(v)
		case nftaSocketLevel:
			e.Level, err = attrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *Socket) String() string {
	return fmt.Sprintf("socket load %s => reg %d", hostDumpName(socketSelectors[:], e.Key), e.Register)
}

func (e *Socket) setID() *uint32 { return nil }
