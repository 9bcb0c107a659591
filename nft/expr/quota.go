package expr

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// maxQuota is the kernel's limit (nft_quota_do_init).
const maxQuota = 1<<63 - 1

// NewQuota returns a quota expression. A too large amount is a *syntax.Error.
func NewQuota(s *syntax.Quota) (*google.Quota, error) {
	q := &google.Quota{Over: s.Over}
	if s.Unit == "" {
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
		return nil, syntax.ErrorAt(s.Pos, "quota: more is used than the quota has: the kernel rejects that")
	}
	return q, nil
}

func quotaStmt(q *google.Quota) *syntax.Quota {
	s := &syntax.Quota{Over: q.Over}
	s.Bytes, s.Unit = datatype.ByteUnits.Reduce(q.Bytes)
	if q.Consumed != 0 {
		s.Used, s.UsedUnit = datatype.ByteUnits.Reduce(q.Consumed)
	}
	return s
}
