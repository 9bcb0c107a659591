package expr

import (
	"fmt"

	"github.com/weft-proxy/weft/nft/syntax"
)

// ConnLimit is the kernel's connlimit expression. google/nftables marshals the
// flags only where there are some.
type ConnLimit struct {
	Count uint32
	// Over matches where there are more connections than Count.
	Over bool
}

// Attributes of connlimit (enum nft_connlimit_attributes) and its flag.
const (
	nftaConnLimitCount = 1
	nftaConnLimitFlags = 2
	connLimitInvert    = 1
)

// Marshal is Expr's.
func (e *ConnLimit) Marshal(uint8) ([]byte, error) {
	var b []byte
	b = AppendU32(b, nftaConnLimitCount, e.Count)
	b = AppendU32(b, nftaConnLimitFlags, Bit(e.Over, connLimitInvert))
	return marshalNamed("connlimit", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *ConnLimit) Unmarshal(data []byte) error {
	*e = ConnLimit{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case nftaConnLimitCount:
			e.Count, err = AttrU32(v)
		case nftaConnLimitFlags:
			var flags uint32
			flags, err = AttrU32(v)
			e.Over = flags&connLimitInvert != 0
		}
		return err
	})
}

// String is Expr's.
func (e *ConnLimit) String() string {
	return fmt.Sprintf("connlimit count %d flags %x", e.Count, Bit(e.Over, connLimitInvert))
}

func (e *ConnLimit) setID() *uint32 { return nil }

// NewConnLimit makes a connlimit expression.
func NewConnLimit(s *syntax.ConnLimit) *ConnLimit {
	return &ConnLimit{Count: s.Count, Over: s.Over}
}
