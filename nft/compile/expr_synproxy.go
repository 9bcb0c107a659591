package compile

import "fmt"

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
	synproxyMSS       = 1
	synproxyWScale    = 2
	synproxySackPerm  = 4
	synproxyTimestamp = 8
)

// Attributes of synproxy (enum nft_synproxy_attributes).
const (
	nftaSynProxyMSS    = 1
	nftaSynProxyWScale = 2
	nftaSynProxyFlags  = 3
)

// Marshal is Expr's.
func (e *SynProxy) Marshal(uint8) ([]byte, error) {
	b := appendU16(nil, nftaSynProxyMSS, e.MSS)
	b = appendAttr(b, nftaSynProxyWScale, []byte{e.WScale})
	b = appendU32(b, nftaSynProxyFlags, e.Flags)
	return marshalNamed("synproxy", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *SynProxy) Unmarshal(data []byte) error {
	*e = SynProxy{}
	return eachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case nftaSynProxyMSS:
			e.MSS, err = attrU16(v)
		case nftaSynProxyWScale:
			if len(v) != 1 {
				return errAttr
			}
			e.WScale = v[0]
		case nftaSynProxyFlags:
			e.Flags, err = attrU32(v)
		}
		return err
	})
}

// String is Expr's.
func (e *SynProxy) String() string {
	return fmt.Sprintf("synproxy mss %d wscale %d", e.MSS, e.WScale)
}

func (e *SynProxy) setID() *uint32 { return nil }
