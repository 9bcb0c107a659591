package expr

import (
	"fmt"
)

// SynProxy is the kernel's synproxy expression. google/nftables marshals only
// the values whose flags are set.
type SynProxy struct {
	MSS    uint16
	WScale uint8
	// Flags are NF_SYNPROXY_OPT_*.
	Flags uint32
}

// The options of synproxy (linux/netfilter/nf_synproxy.h).
const (
	SynproxyMSS       = 1
	SynproxyWScale    = 2
	SynproxySackPerm  = 4
	SynproxyTimestamp = 8
)

// Attributes of synproxy (enum nft_synproxy_attributes).
const (
	NftaSynProxyMSS    = 1
	NftaSynProxyWScale = 2
	NftaSynProxyFlags  = 3
)

// Marshal is Expr's.
func (e *SynProxy) Marshal(uint8) ([]byte, error) {
	b := appendU16(nil, NftaSynProxyMSS, e.MSS)
	b = AppendAttr(b, NftaSynProxyWScale, []byte{e.WScale})
	b = AppendU32(b, NftaSynProxyFlags, e.Flags)
	return marshalNamed("synproxy", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *SynProxy) Unmarshal(data []byte) error {
	*e = SynProxy{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case NftaSynProxyMSS:
			e.MSS, err = attrU16(v)
		case NftaSynProxyWScale:
			if len(v) != 1 {
				return ErrAttr
			}
			e.WScale = v[0]
		case NftaSynProxyFlags:
			e.Flags, err = AttrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *SynProxy) String() string {
	return fmt.Sprintf("synproxy mss %d wscale %d", e.MSS, e.WScale)
}

func (e *SynProxy) setID() *uint32 { return nil }
