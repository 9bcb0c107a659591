package admission

import (
	"fmt"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// MaxTTL bounds the time until a fragment's expiration.
const MaxTTL = 10 * 365 * 24 * time.Hour

func (s *sender) now() time.Time {
	if s.cfg.Now != nil {
		return s.cfg.Now()
	}
	return time.Now()
}

// expires returns zero for never.
func (b *Builder) expires(f *weftv1.Fragment) time.Time {
	now := b.now()
	var at time.Time
	switch x := f.GetExpiration().(type) {
	case nil:
		return time.Time{}
	case *weftv1.Fragment_Ttl:
		ttl := x.Ttl.AsDuration()
		if err := x.Ttl.CheckValid(); err != nil || ttl <= 0 {
			b.Reject(weftv1.Violation_REASON_INVALID, fmt.Sprintf("ttl %v: want more than 0", ttl))
			return time.Time{}
		}
		at = now.Add(ttl)
	case *weftv1.Fragment_ExpireTime:
		at = x.ExpireTime.AsTime()
		if err := x.ExpireTime.CheckValid(); err != nil {
			b.Reject(weftv1.Violation_REASON_INVALID, fmt.Sprintf("expire_time: %v", err))
			return time.Time{}
		}
		if !at.After(now) {
			b.Reject(weftv1.Violation_REASON_EXPIRED, fmt.Sprintf("expire_time %s has passed: give a later time", at.Format(time.RFC3339)))
		}
	default:
		b.Reject(weftv1.Violation_REASON_INVALID, fmt.Sprintf("expiration %T is unknown", x))
	}
	if at.Sub(now) > MaxTTL {
		b.Reject(weftv1.Violation_REASON_INVALID, fmt.Sprintf("the fragment would expire at %s: want at most %d days from now", at.UTC().Format(time.RFC3339), MaxTTL/(24*time.Hour)))
	}
	return at.UTC().Round(0)
}
