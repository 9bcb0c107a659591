package model

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
)

// claim is a right that one Service can have: to a port of an address, whatever
// kind of address it is, or with the zero address to a NodePort (rule 27).
type claim struct {
	addr     netip.Addr
	protocol Protocol
	port     uint16
}

// String names the claim in logs.
func (c claim) String() string {
	if !c.addr.IsValid() {
		return "nodePort " + strconv.Itoa(int(c.port)) + "/" + c.protocol.String()
	}
	return netip.AddrPortFrom(c.addr, c.port).String() + "/" + c.protocol.String()
}

func (c claim) compare(d claim) int {
	return cmp.Or(c.addr.Compare(d.addr), cmp.Compare(c.protocol, d.protocol), cmp.Compare(c.port, d.port))
}

// claims has who wants what, the one that holds the claim first: a Service whose
// own ClusterIP it is, as nobody else may take that away, or else the oldest.
type claims map[claim][]*service

func (c claims) holds(k claim, s *service) bool {
	all := c[k]
	return len(all) > 0 && all[0] == s
}

// older orders claimants: creationTimestamp, then namespace and name.
func older(a, b *service) int {
	return cmp.Or(a.created.Compare(b.created), CompareKeys(a.key, b.key))
}

// before orders the claimants of a claim.
func (c claim) before(a, b *service) int {
	rank := func(s *service) int {
		if c.addr.IsValid() && s.clusterIPs[FamilyOf(c.addr)] == c.addr {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), older(a, b))
}

// wanted calls f for each claim of a Service.
func (s *service) wanted(f func(claim)) {
	for i := range s.ports {
		p := &s.ports[i]
		for fam, ip := range s.clusterIPs {
			if ip.IsValid() {
				f(claim{addr: ip, protocol: p.protocol, port: p.number})
			}
			for _, e := range s.external[fam] {
				f(claim{addr: e.Addr, protocol: p.protocol, port: p.number})
			}
		}
		if p.nodePort != 0 {
			f(claim{protocol: p.protocol, port: p.nodePort})
		}
	}
}

// contest brings the claims of the named Services up to date and returns their
// names together with those of the Services that won or lost a claim by it.
func (m *Model) contest(dirty []Key) []Key {
	touched := make(map[Key]struct{}, len(dirty))
	// before has the claims that are looked at and who wanted them until now,
	// the holder first.
	before := make(map[claim][]Key)
	for _, key := range dirty {
		touched[key] = struct{}{}
		was, now := m.contested[key], m.services[key]
		if was == now {
			continue
		}
		if was != nil {
			was.wanted(func(k claim) { m.note(k, before); m.withdraw(k, was) })
		}
		if now == nil {
			delete(m.contested, key)
			continue
		}
		m.contested[now.key] = now
		now.wanted(func(k claim) { m.note(k, before); m.enter(k, now) })
	}
	for k, had := range before {
		if len(had) > 0 {
			touched[had[0]] = struct{}{}
		}
		if all := m.claims[k]; len(all) > 0 {
			touched[all[0].key] = struct{}{}
		}
	}
	m.report(before)
	return sortedKeys(touched)
}

// note remembers who wanted a claim before this contest.
func (m *Model) note(k claim, before map[claim][]Key) {
	if _, seen := before[k]; seen {
		return
	}
	var had []Key
	for _, s := range m.claims[k] {
		had = append(had, s.key)
	}
	before[k] = had
}

func (m *Model) enter(k claim, s *service) {
	all := m.claims[k]
	at, _ := slices.BinarySearchFunc(all, s, k.before)
	m.claims[k] = slices.Insert(all, at, s)
	if len(all) > 0 {
		m.stats.Conflicts++
	}
}

func (m *Model) withdraw(k claim, s *service) {
	all := m.claims[k]
	at := slices.Index(all, s)
	switch {
	case at < 0:
	case len(all) == 1:
		delete(m.claims, k)
	default:
		m.claims[k] = slices.Delete(all, at, at+1)
		m.stats.Conflicts--
	}
}
