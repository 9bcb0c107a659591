package compile

import "github.com/weft-proxy/weft/nft/syntax"

// maxQuota is the greatest quota of the kernel (nft_quota_do_init).
const maxQuota = 1<<63 - 1

// newQuota makes a quota expression.
func newQuota(s *syntax.Quota) (*Quota, error) {
	q := &Quota{Over: s.Over}
	var ok bool
	if q.Bytes, ok = scaled(s.Bytes, s.Unit); !ok || q.Bytes > maxQuota {
		return nil, errorAt(s.Pos, "quota: the amount is too large: want at most %d bytes", uint64(maxQuota))
	}
	if s.UsedUnit == "" {
		return q, nil
	}
	if q.Consumed, ok = scaled(s.Used, s.UsedUnit); !ok || q.Consumed > q.Bytes {
		return nil, errorAt(s.Pos, "quota: more is used than the quota has: the kernel refuses that")
	}
	return q, nil
}

// newConnLimit makes a connlimit expression.
func newConnLimit(s *syntax.ConnLimit) *ConnLimit {
	return &ConnLimit{Count: s.Count, Over: s.Over}
}
