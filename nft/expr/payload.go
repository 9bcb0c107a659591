package expr

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// PayloadWrite is the kernel's payload expression that changes a packet.
// google/nftables leaves out the checksum's attributes where nft(8) sends
// zeros.
type PayloadWrite struct {
	// Source is the register with the bytes.
	Source uint32
	// Base is NFT_PAYLOAD_*_HEADER; Offset and Len are in bytes.
	Base, Offset, Len uint32
	// CsumKind is how the checksum of the header at CsumOffset is corrected
	// (enum nft_payload_csum_types).
	CsumKind, CsumOffset uint32
	// Pseudo is true where the checksum of the transport header changes too.
	Pseudo bool
}

// Marshal is Expr's.
func (e *PayloadWrite) Marshal(uint8) ([]byte, error) {
	var b []byte
	b = AppendU32(b, unix.NFTA_PAYLOAD_SREG, e.Source)
	b = AppendU32(b, unix.NFTA_PAYLOAD_BASE, e.Base)
	b = AppendU32(b, unix.NFTA_PAYLOAD_OFFSET, e.Offset)
	b = AppendU32(b, unix.NFTA_PAYLOAD_LEN, e.Len)
	if e.CsumKind != 0 {
		b = AppendU32(b, unix.NFTA_PAYLOAD_CSUM_TYPE, e.CsumKind)
		b = AppendU32(b, unix.NFTA_PAYLOAD_CSUM_OFFSET, e.CsumOffset)
	}
	if e.Pseudo {
		b = AppendU32(b, unix.NFTA_PAYLOAD_CSUM_FLAGS, unix.NFT_PAYLOAD_L4CSUM_PSEUDOHDR)
	}
	return marshalNamed("payload", b), nil
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *PayloadWrite) Unmarshal(data []byte) error {
	*e = PayloadWrite{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_PAYLOAD_SREG:
			e.Source, err = AttrU32(v)
		case unix.NFTA_PAYLOAD_BASE:
			e.Base, err = AttrU32(v)
		case unix.NFTA_PAYLOAD_OFFSET:
			e.Offset, err = AttrU32(v)
		case unix.NFTA_PAYLOAD_LEN:
			e.Len, err = AttrU32(v)
		case unix.NFTA_PAYLOAD_CSUM_TYPE:
			e.CsumKind, err = AttrU32(v)
		case unix.NFTA_PAYLOAD_CSUM_OFFSET:
			e.CsumOffset, err = AttrU32(v)
		case unix.NFTA_PAYLOAD_CSUM_FLAGS:
			var flags uint32
			flags, err = AttrU32(v)
			e.Pseudo = flags&unix.NFT_PAYLOAD_L4CSUM_PSEUDOHDR != 0
		}
		return err
	})
}

// String is Expr's.
func (e *PayloadWrite) String() string {
	flags := 0
	if e.Pseudo {
		flags = unix.NFT_PAYLOAD_L4CSUM_PSEUDOHDR
	}
	return fmt.Sprintf("payload write reg %d => %db @ %s header + %d csum_type %d csum_off %d csum_flags 0x%x",
		e.Source, e.Len, payloadBase(e.Base), e.Offset, e.CsumKind, e.CsumOffset, flags)
}

func (e *PayloadWrite) setID() *uint32 { return nil }

// payloadBase is libnftnl's name of a payload base (enum nft_payload_bases).
func payloadBase(base uint32) string {
	names := [...]string{"link", "network", "transport", "inner"}
	if base < uint32(len(names)) {
		return names[base]
	}
	return "unknown"
}
