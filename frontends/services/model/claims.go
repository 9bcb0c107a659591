package model

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
)

// claim is a port of an address, or of no address for a NodePort. Only one Service can hold it (rule 27).
type claim struct {
	addr     netip.Addr
	protocol Protocol
	port     uint16
}

func (c claim) String() string {
	if !c.addr.IsValid() {
		return "nodePort " + strconv.Itoa(int(c.port)) + "/" + c.protocol.String()
	}
	return netip.AddrPortFrom(c.addr, c.port).String() + "/" + c.protocol.String()
}

func (c claim) compare(d claim) int {
	return cmp.Or(c.addr.Compare(d.addr), cmp.Compare(c.protocol, d.protocol), cmp.Compare(c.port, d.port))
}

type claims struct {
	// winners: the Service with the ClusterIP, else the oldest
	holders map[claim]*service
	// losers, in the order of succession
	others map[claim][]*service
}

func (c *claims) holds(k claim, s *service) bool { return c.holders[k] == s }

func (c *claims) add(k claim, s *service) {
	h := c.holders[k]
	if h == nil {
		c.holders[k] = s
		return
	}
	if k.before(s, h) < 0 {
		c.holders[k], s = s, h
	}
	at, _ := slices.BinarySearchFunc(c.others[k], s, k.before)
	c.others[k] = slices.Insert(c.others[k], at, s)
}

func (c *claims) remove(k claim, s *service) {
	others := c.others[k]
	at := slices.Index(others, s)
	if c.holders[k] == s {
		if len(others) == 0 {
			delete(c.holders, k)
			return
		}
		c.holders[k], at = others[0], 0
	}
	if len(others) == 1 {
		delete(c.others, k)
	} else {
		c.others[k] = slices.Delete(others, at, at+1)
	}
}

func older(a, b *service) int {
	return cmp.Or(a.created.Compare(b.created), CompareKeys(a.of.key, b.of.key))
}

func (c claim) before(a, b *service) int {
	rank := func(s *service) int {
		if c.addr.IsValid() && s.clusterIPs[FamilyOf(c.addr)] == c.addr {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), older(a, b))
}

func (s *service) eachClaim(f func(claim)) {
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

// Find returns the Service and port name of an address and port, as of the last Refresh. The zero address
// finds a NodePort.
func (m *Model) Find(addr netip.Addr, protocol Protocol, port uint16) (key Key, name string, ok bool) {
	s := m.claims.holders[claim{addr, protocol, port}]
	if s == nil {
		return Key{}, "", false
	}
	for i := range s.ports {
		if p := &s.ports[i]; p.protocol == protocol && (addr.IsValid() && p.number == port || !addr.IsValid() && p.nodePort == port) {
			return s.of.key, p.name.Value(), true
		}
	}
	return Key{}, "", false
}

// resolveClaims returns the affected Services.
func (m *Model) resolveClaims(dirty []Key) []Key {
	touched := make(map[Key]struct{}, len(dirty))
	// previous claimants, the winner first
	before := make(map[claim][]Key)
	for _, key := range dirty {
		touched[key] = struct{}{}
		r := m.records[key]
		was, now := r.claimed, r.parsed
		if was == now {
			continue
		}
		if was != nil {
			was.eachClaim(func(k claim) { m.rememberClaimants(k, before); m.claims.remove(k, was) })
		}
		if now != nil {
			now.eachClaim(func(k claim) { m.rememberClaimants(k, before); m.claims.add(k, now) })
		}
		r.claimed = now
	}
	m.stats.Work += uint64(len(dirty) + len(before))
	for k, had := range before {
		if len(had) > 0 {
			touched[had[0]] = struct{}{}
		}
		if h := m.claims.holders[k]; h != nil {
			touched[h.of.key] = struct{}{}
		}
		m.stats.Conflicts += len(m.claims.others[k]) - max(0, len(had)-1)
	}
	m.report(before)
	return sortedKeys(touched)
}

func (m *Model) rememberClaimants(k claim, before map[claim][]Key) {
	if _, seen := before[k]; seen {
		return
	}
	var had []Key
	if h := m.claims.holders[k]; h != nil {
		had = append(had, h.of.key)
	}
	for _, s := range m.claims.others[k] {
		had = append(had, s.of.key)
	}
	before[k] = had
}
