package model

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// AddressConflict is the Reason of a Notice to a Service that lost a claim.
const AddressConflict = "AddressConflict"

// maxNamed bounds the claims in a Notice, because Event texts are limited.
const maxNamed = 8

// reporters bounds the nodes that report a conflict. An Event costs two requests.
const reporters = 3

type loss struct {
	service, holder *record
	claims          []claim
}

// report does not repeat a loss to the same Service.
func (c *claims) report(before map[claim][]*record) {
	losses := make(map[[2]*record]*loss)
	for k, had := range before {
		others := c.others[k]
		if len(others) == 0 {
			continue
		}
		holder := c.holders[k].of
		known := make(map[*record]struct{}, len(had))
		if len(had) > 0 && had[0] == holder {
			for _, r := range had[1:] {
				known[r] = struct{}{}
			}
		}
		for _, s := range others {
			if _, ok := known[s.of]; ok {
				continue
			}
			pair := [2]*record{s.of, holder}
			if losses[pair] == nil {
				losses[pair] = &loss{service: s.of, holder: holder}
			}
			losses[pair].claims = append(losses[pair].claims, k)
		}
	}
	for _, l := range slices.SortedFunc(maps.Values(losses), func(a, b *loss) int {
		return cmp.Or(CompareKeys(a.service.key, b.service.key), CompareKeys(a.holder.key, b.holder.key))
	}) {
		slices.SortFunc(l.claims, claim.compare)
		c.log.Warn("two Services claim the same address: the Service whose ClusterIP it is wins, then the older one; ties are broken by name",
			"claims", l.names(), "winner", l.holder.key.String(), "loser", l.service.key.String())
		c.notify(Notice{Service: l.service.key, Reason: AddressConflict, Message: l.message(), Reporter: l.isReporter()})
	}
}

// A Reporter has one of the first endpoints of the winner, or of the loser if the winner is without
// endpoints. All nodes know the same endpoints.
func (l *loss) isReporter() bool {
	for _, r := range []*record{l.holder, l.service} {
		if first := r.firstEndpoints(reporters); len(first) > 0 {
			return slices.ContainsFunc(first, func(e endpoint) bool { return e.local() })
		}
	}
	return false
}

func (r *record) firstEndpoints(n int) []endpoint {
	var all []endpoint
	for s := r.slices; s != nil; s = s.next {
		for i := range min(n, s.len()) {
			all = append(all, s.at(i))
		}
	}
	slices.SortFunc(all, func(a, b endpoint) int { return a.addr.Compare(b.addr) })
	return all[:min(n, len(all))]
}

func (s *slice) at(i int) endpoint {
	packed := s.endpoints[i*s.stride():]
	addr, _ := netip.AddrFromSlice([]byte(packed[:addrBytes[s.family]]))
	return endpoint{addr: addr, flags: flags(packed[addrBytes[s.family]])}
}

func (l *loss) names() string {
	var names []string
	for _, k := range l.claims[:min(len(l.claims), maxNamed)] {
		names = append(names, k.String())
	}
	out := strings.Join(names, ", ")
	if more := len(l.claims) - maxNamed; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

func (l *loss) message() string {
	return fmt.Sprintf("Service %s already has %s, because it is older (ties are broken by name): this Service does not work there.",
		l.holder.key, l.names())
}
