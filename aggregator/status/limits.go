package status

import (
	"github.com/weft-proxy/weft/aggregator/access"
	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// Limits returns each limit of a publisher with its use. A nil p has no limits.
func Limits(p *access.Publisher, u Holding, streams int) []*weftv1.LimitStatus {
	held := admission.Held(u.Usage)
	held[access.LimitStreams], held[access.LimitPacket], held[access.LimitEveryPacket] = streams, u.Worst, u.Every
	var all []*weftv1.LimitStatus
	for _, l := range access.Counted() {
		s := &weftv1.LimitStatus{Name: string(l), Used: uint64(max(held[l], 0))} //nolint:gosec // a count
		if p != nil {
			s.Limit = uint64(p.Limits.Most[l]) //nolint:gosec // at least 0
		}
		all = append(all, s)
	}
	return all
}
