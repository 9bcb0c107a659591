package compile

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Quota is the kernel's quota expression. google/nftables leaves out the
// attributes that are 0, which nft(8) sends.
type Quota struct {
	Bytes, Consumed uint64
	// Over matches what is beyond the quota.
	Over bool
}

// quotaInvert is NFT_QUOTA_F_INV.
const quotaInvert = 1

// Marshal is Expr's.
func (e *Quota) Marshal(uint8) ([]byte, error) {
	return marshalNamed("quota", e.attributes()), nil
}

// attributes are those of the expression and of a named quota.
func (e *Quota) attributes() []byte {
	b := appendU64(nil, unix.NFTA_QUOTA_BYTES, e.Bytes)
	b = appendU64(b, unix.NFTA_QUOTA_CONSUMED, e.Consumed)
	return appendU32(b, unix.NFTA_QUOTA_FLAGS, bit(e.Over, quotaInvert))
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Quota) Unmarshal(data []byte) error {
	*e = Quota{}
	return eachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_QUOTA_BYTES:
			e.Bytes, err = attrU64(v)
		case unix.NFTA_QUOTA_CONSUMED:
			e.Consumed, err = attrU64(v)
		case unix.NFTA_QUOTA_FLAGS:
			var flags uint32
			flags, err = attrU32(v)
			e.Over = flags&quotaInvert != 0
		}
		return err
	})
}

// String is Expr's.
func (e *Quota) String() string {
	return fmt.Sprintf("quota bytes %d consumed %d flags %d", e.Bytes, e.Consumed, bit(e.Over, quotaInvert))
}

func (e *Quota) setID() *uint32 { return nil }

// bit returns the bits of a flag that is set, else 0.
func bit(set bool, bits uint32) uint32 {
	if set {
		return bits
	}
	return 0
}

// appendU64 appends a 64-bit attribute in network byte order.
func appendU64(b []byte, typ uint16, v uint64) []byte {
	return appendAttr(b, typ, binary.BigEndian.AppendUint64(nil, v))
}

// attrU64 reads a 64-bit attribute.
func attrU64(v []byte) (uint64, error) {
	if len(v) != 8 {
		return 0, errAttr
	}
	return binary.BigEndian.Uint64(v), nil
}
