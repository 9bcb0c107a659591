package expr

import (
	"fmt"

	"github.com/weft-proxy/weft/nft/selector"
)

// TProxy is the kernel's tproxy expression. google/nftables always marshals a
// port, and no family where there is none.
type TProxy struct {
	// Family is NFPROTO_IPV4 or NFPROTO_IPV6, 0 for both.
	Family uint32
	// Addr and Port are register numbers, 0 for none.
	Addr, Port uint32
}

// Attributes of tproxy (enum nft_tproxy_attributes).
const (
	nftaTProxyFamily = 1
	nftaTProxyAddr   = 2
	nftaTProxyPort   = 3
)

// Marshal is Expr's.
func (e *TProxy) Marshal(uint8) ([]byte, error) {
	b := AppendU32(nil, nftaTProxyFamily, e.Family)
	if e.Addr != 0 {
		b = AppendU32(b, nftaTProxyAddr, e.Addr)
	}
	if e.Port != 0 {
		b = AppendU32(b, nftaTProxyPort, e.Port)
	}
	return marshalNamed("tproxy", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *TProxy) Unmarshal(data []byte) error {
	*e = TProxy{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case nftaTProxyFamily:
			e.Family, err = AttrU32(v)
		case nftaTProxyAddr:
			e.Addr, err = AttrU32(v)
		case nftaTProxyPort:
			e.Port, err = AttrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *TProxy) String() string {
	s := "tproxy"
	switch e.Family {
	case selector.NFProtoIPv4:
		s += " ip"
	case selector.NFProtoIPv6:
		s += " ip6"
	}
	if e.Addr != 0 {
		s += fmt.Sprintf(" addr reg %d", e.Addr)
	}
	if e.Port != 0 {
		s += fmt.Sprintf(" port reg %d", e.Port)
	}
	return s
}

func (e *TProxy) setID() *uint32 { return nil }
