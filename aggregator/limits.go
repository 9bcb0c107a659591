package aggregator

import (
	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// limitStatuses returns how much a publisher holds, and its limits; p is nil for a
// publisher without limits.
func limitStatuses(p *access.Publisher, u publisherUsage, streams int) []*weftv1.LimitStatus {
	var all []*weftv1.LimitStatus
	for _, l := range []struct {
		limit access.Limit
		used  int
	}{
		{access.LimitFragments, u.Fragments},
		{access.LimitRules, u.Rules + u.Objects},
		{access.LimitElements, u.Elements + u.Anonymous},
		{access.LimitBytes, u.Bytes},
		{access.LimitStreams, streams},
		{access.LimitChains, u.Chains},
		{access.LimitBaseChains, u.BaseChains},
		{access.LimitSets, u.Sets},
		{access.LimitMemory, u.Memory},
		{access.LimitVisits, u.visits},
	} {
		s := &weftv1.LimitStatus{Name: string(l.limit), Used: uint64(max(l.used, 0))} //nolint:gosec // a count
		if p != nil {
			s.Limit = uint64(p.Limits.Most[l.limit]) //nolint:gosec // at least 0
		}
		all = append(all, s)
	}
	return all
}
