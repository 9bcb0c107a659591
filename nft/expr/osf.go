package expr

import (
	"fmt"
)

// OSF is the kernel's osf expression.
type OSF struct {
	Register uint32
	// TTL says how the TTL is compared: 0 exactly, 1 or 2 as below.
	TTL uint8
	// Version asks for the version behind the name.
	Version bool
}

// How the TTL of a fingerprint is compared (linux/netfilter/nfnetlink_osf.h).
const (
	OsfTTLLess    = 1
	OsfTTLNoCheck = 2
)

// Attributes of osf (enum nft_osf_attributes), and its flag.
const (
	nftaOSFDreg  = 1
	nftaOSFTTL   = 2
	nftaOSFFlags = 3

	osfVersion = 1
)

// Marshal is Expr's.
func (e *OSF) Marshal(uint8) ([]byte, error) {
	b := AppendU32(nil, nftaOSFDreg, e.Register)
	b = AppendAttr(b, nftaOSFTTL, []byte{e.TTL})
	if e.Version {
		b = AppendU32(b, nftaOSFFlags, osfVersion)
	}
	return marshalNamed("osf", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *OSF) Unmarshal(data []byte) error {
	*e = OSF{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case nftaOSFDreg:
			e.Register, err = AttrU32(v)
		case nftaOSFTTL:
			if len(v) != 1 {
				return ErrAttr
			}
			e.TTL = v[0]
		case nftaOSFFlags:
			var flags uint32
			flags, err = AttrU32(v)
			e.Version = flags&osfVersion != 0
		}
		return err
	})
}

// String is Expr's.
func (e *OSF) String() string { return fmt.Sprintf("osf dreg %d", e.Register) }

func (e *OSF) setID() *uint32 { return nil }
