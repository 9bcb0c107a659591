package expr

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Quota is the kernel's quota expression. google/nftables leaves out the
// attributes that are 0, which nft(8) sends.
type Quota struct {
	Bytes, Consumed uint64
	// Over matches what is beyond the quota.
	Over bool
}

// QuotaInvert is NFT_QUOTA_F_INV.
const QuotaInvert = 1

// Marshal is Expr's.
func (e *Quota) Marshal(uint8) ([]byte, error) {
	return marshalNamed("quota", e.Attributes()), nil
}

// Attributes are those of the expression and of a named quota.
func (e *Quota) Attributes() []byte {
	b := appendU64(nil, unix.NFTA_QUOTA_BYTES, e.Bytes)
	b = appendU64(b, unix.NFTA_QUOTA_CONSUMED, e.Consumed)
	return AppendU32(b, unix.NFTA_QUOTA_FLAGS, Bit(e.Over, QuotaInvert))
}

// Unmarshal reads the attributes of NFTA_EXPR_DATA.
func (e *Quota) Unmarshal(data []byte) error {
	*e = Quota{}
	return EachAttr(data, func(typ uint16, v []byte) (err error) {
		switch typ {
		case unix.NFTA_QUOTA_BYTES:
			e.Bytes, err = attrU64(v)
		case unix.NFTA_QUOTA_CONSUMED:
			e.Consumed, err = attrU64(v)
		case unix.NFTA_QUOTA_FLAGS:
			var flags uint32
			flags, err = AttrU32(v)
			e.Over = flags&QuotaInvert != 0
		}
		return err
	})
}

// String is Expr's.
func (e *Quota) String() string {
	return fmt.Sprintf("quota bytes %d consumed %d flags %d", e.Bytes, e.Consumed, Bit(e.Over, QuotaInvert))
}

func (e *Quota) setID() *uint32 { return nil }

// Bit returns the bits of a flag that is set, else 0.
func Bit(set bool, bits uint32) uint32 {
	if set {
		return bits
	}
	return 0
}

// appendU64 appends a 64-bit attribute in network byte order.
func appendU64(b []byte, typ uint16, v uint64) []byte {
	return AppendAttr(b, typ, binary.BigEndian.AppendUint64(nil, v))
}

// attrU64 reads a 64-bit attribute.
func attrU64(v []byte) (uint64, error) {
	if len(v) != 8 {
		return 0, ErrAttr
	}
	return binary.BigEndian.Uint64(v), nil
}

// maxQuota is the greatest quota of the kernel (nft_quota_do_init).
const maxQuota = 1<<63 - 1

// NewQuota makes a quota expression.
func NewQuota(s *syntax.Quota) (*Quota, error) {
	q := &Quota{Over: s.Over}
	if s.Unit == "" {
		// A quota object may be declared without an amount.
		return q, nil
	}
	var ok bool
	if q.Bytes, ok = datatype.ByteUnits.Scale(s.Bytes, s.Unit); !ok || q.Bytes > maxQuota {
		return nil, syntax.ErrorAt(s.Pos, "quota: the amount is too large: want at most %d bytes", uint64(maxQuota))
	}
	if s.UsedUnit == "" {
		return q, nil
	}
	if q.Consumed, ok = datatype.ByteUnits.Scale(s.Used, s.UsedUnit); !ok || q.Consumed > q.Bytes {
		return nil, syntax.ErrorAt(s.Pos, "quota: more is used than the quota has: the kernel refuses that")
	}
	return q, nil
}

// QuotaOf is the inverse of newQuota.
func QuotaOf(q *Quota) *syntax.Quota {
	s := &syntax.Quota{Over: q.Over}
	s.Bytes, s.Unit = datatype.ByteUnits.Reduce(q.Bytes)
	if q.Consumed != 0 {
		s.Used, s.UsedUnit = datatype.ByteUnits.Reduce(q.Consumed)
	}
	return s
}
