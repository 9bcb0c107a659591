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
	service, holder Key
	claims          []claim
}

// report does not repeat a loss to the same Service.
func (m *Model) report(before map[claim][]Key) {
	losses := make(map[[2]Key]*loss)
	for k, had := range before {
		others := m.claims.others[k]
		if len(others) == 0 {
			continue
		}
		holder := m.claims.holders[k].of.key
		known := make(map[Key]struct{}, len(had))
		if len(had) > 0 && had[0] == holder {
			for _, key := range had[1:] {
				known[key] = struct{}{}
			}
		}
		for _, s := range others {
			if _, ok := known[s.of.key]; ok {
				continue
			}
			pair := [2]Key{s.of.key, holder}
			if losses[pair] == nil {
				losses[pair] = &loss{service: s.of.key, holder: holder}
			}
			losses[pair].claims = append(losses[pair].claims, k)
		}
	}
	sorted := slices.Collect(maps.Values(losses))
	slices.SortFunc(sorted, func(a, b *loss) int {
		return cmp.Or(CompareKeys(a.service, b.service), CompareKeys(a.holder, b.holder))
	})
	for _, l := range sorted {
		slices.SortFunc(l.claims, claim.compare)
		m.cfg.Logger.Warn("two Services claim the same address: the Service whose ClusterIP it is wins, then the older one; ties are broken by name",
			"claims", l.names(), "winner", l.holder.String(), "loser", l.service.String())
		m.cfg.Notify(Notice{Service: l.service, Reason: AddressConflict, Message: l.message(), Reporter: m.reports(l)})
	}
}

// A Reporter has one of the first endpoints of the winner, or of the loser if the winner is without
// endpoints. All nodes know the same endpoints.
func (m *Model) reports(l *loss) bool {
	for _, key := range []Key{l.holder, l.service} {
		if first := m.records[key].firstEndpoints(reporters); len(first) > 0 {
			return slices.ContainsFunc(first, func(e endpoint) bool { return e.local() })
		}
	}
	return false
}

func (r *record) firstEndpoints(n int) []endpoint {
	var all []endpoint
	if r == nil {
		return nil
	}
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
		l.holder, l.names())
}
