package expr

import (
	"fmt"
	"time"

	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// NewLimit returns a limit expression, by default with a burst of 5 packets. Wrong numbers are a
// *syntax.Error.
func NewLimit(s *syntax.Limit) (*google.Limit, error) {
	if s.Rate == 0 {
		return nil, syntax.ErrorAt(s.Pos, "limit: the rate is 0: want 1 or more")
	}
	seconds, ok := datatype.TimeUnits.Size(s.Per)
	if !ok {
		return nil, syntax.ErrorAt(s.Pos, "limit: unknown unit of time %q", s.Per)
	}
	l := &google.Limit{Rate: s.Rate, Over: s.Over, Type: google.LimitTypePkts, Unit: google.LimitTime(seconds), Burst: defaultBurst}
	if s.Unit != "" {
		l.Type, l.Burst = google.LimitTypePktBytes, 0
		if l.Rate, ok = datatype.ByteUnits.Scale(s.Rate, s.Unit); !ok {
			return nil, syntax.ErrorAt(s.Pos, "limit: the rate is too large")
		}
	}
	if s.BurstUnit == "" {
		return l, checkTokens(s, l)
	}
	if (s.BurstUnit == "packets") != (s.Unit == "") {
		return nil, syntax.ErrorAt(s.Pos, "limit: rate and burst must both be in packets, or both in bytes")
	}
	burst := s.Burst
	if s.BurstUnit != "packets" {
		burst, ok = datatype.ByteUnits.Scale(burst, s.BurstUnit)
	}
	if !ok || burst > 1<<32-1 {
		return nil, syntax.ErrorAt(s.Pos, "limit: the burst is too large")
	}
	if burst == 0 && s.Unit == "" {
		return nil, syntax.ErrorAt(s.Pos, "limit: the burst is 0: want 1 or more")
	}
	l.Burst = uint32(burst)
	return l, checkTokens(s, l)
}

// The kernel computes in 64 bits of nanoseconds (nft_limit_init).
func checkTokens(s *syntax.Limit, l *google.Limit) error {
	if l.Type != google.LimitTypePktBytes {
		if l.Rate+uint64(l.Burst) < l.Rate {
			return syntax.ErrorAt(s.Pos, "limit: rate and burst are too large")
		}
		return nil
	}
	unit := uint64(l.Unit) * uint64(time.Second)
	if l.Rate+uint64(l.Burst) > (1<<64-1)/unit {
		return syntax.ErrorAt(s.Pos, "limit: rate and burst are too large for a %s", s.Per)
	}
	return nil
}

const defaultBurst = 5

func limitStmt(l *google.Limit) (*syntax.Limit, error) {
	s := &syntax.Limit{Over: l.Over, Rate: l.Rate}
	var ok bool
	if s.Per, ok = datatype.TimeUnits.Name(uint64(l.Unit)); !ok {
		return nil, fmt.Errorf("limit: unknown unit of time of %d seconds", uint64(l.Unit))
	}
	if l.Type == google.LimitTypePktBytes {
		s.Rate, s.Unit = datatype.ByteUnits.Reduce(l.Rate)
		if l.Burst != 0 {
			s.Burst, s.BurstUnit = datatype.ByteUnits.Reduce(uint64(l.Burst))
		}
	} else if l.Burst != 0 && l.Burst != defaultBurst {
		s.Burst, s.BurstUnit = uint64(l.Burst), "packets"
	}
	return s, nil
}
