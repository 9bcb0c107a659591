package expr

import (
	"fmt"

	"github.com/weft-proxy/weft/nft/selector"
)

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
	b := AppendU32(nil, nftaSocketKey, e.Key)
	b = AppendU32(b, nftaSocketDreg, e.Register)
	b = AppendU32(b, nftaSocketLevel, e.Level)
	return marshalNamed("socket", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Socket) Unmarshal(data []byte) error {
	*e = Socket{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case nftaSocketKey:
			e.Key, err = AttrU32(v)
		case nftaSocketDreg:
			e.Register, err = AttrU32(v)
		case nftaSocketLevel:
			e.Level, err = AttrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *Socket) String() string {
	return fmt.Sprintf("socket load %s => reg %d", selector.HostDumpName(selector.SocketKeys[:], e.Key), e.Register)
}

func (e *Socket) setID() *uint32 { return nil }
