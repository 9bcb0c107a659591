package model

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
)

// claim is a right that one Service can have: to a port of an address, or with
// the zero address to a NodePort.
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

// claims has who wants what, the oldest Service first: it holds the claim.
type claims map[claim][]*service

func (c claims) holds(k claim, s *service) bool {
	all := c[k]
	return len(all) > 0 && all[0] == s
}

// older orders claimants: creationTimestamp, then namespace and name.
func older(a, b *service) int {
	return cmp.Or(a.created.Compare(b.created), CompareKeys(a.key, b.key))
}

// wanted calls f for each claim of a Service.
func (s *service) wanted(f func(claim)) {
	for i := range s.ports {
		p := &s.ports[i]
		for _, ip := range s.clusterIPs {
			if ip.IsValid() {
				f(claim{addr: ip, protocol: p.protocol, port: p.number})
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
	holders := make(map[claim]Key)
	changed := make(map[claim]struct{})
	for _, key := range dirty {
		touched[key] = struct{}{}
		was, now := m.contested[key], m.services[key]
		if was == now {
			continue
		}
		if was != nil {
			was.wanted(func(k claim) { m.note(k, holders, changed); m.withdraw(k, was) })
		}
		if now == nil {
			delete(m.contested, key)
			continue
		}
		m.contested[key] = now
		now.wanted(func(k claim) { m.note(k, holders, changed); m.enter(k, now) })
	}
	for k := range changed {
		before, had := holders[k]
		all := m.claims[k]
		if had {
			touched[before] = struct{}{}
		}
		if len(all) > 0 {
			touched[all[0].key] = struct{}{}
		}
	}
	m.report(changed)
	return sortedKeys(touched)
}

// note remembers who held a claim before this contest.
func (m *Model) note(k claim, holders map[claim]Key, changed map[claim]struct{}) {
	if _, seen := changed[k]; seen {
		return
	}
	changed[k] = struct{}{}
	if all := m.claims[k]; len(all) > 0 {
		holders[k] = all[0].key
	}
}

func (m *Model) enter(k claim, s *service) {
	all := m.claims[k]
	at, _ := slices.BinarySearchFunc(all, s, older)
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

// report logs who goes without, in a stable order.
func (m *Model) report(changed map[claim]struct{}) {
	var lost []claim
	for k := range changed {
		if len(m.claims[k]) > 1 {
			lost = append(lost, k)
		}
	}
	slices.SortFunc(lost, func(a, b claim) int {
		return cmp.Or(a.addr.Compare(b.addr), cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.port, b.port))
	})
	for _, k := range lost {
		all := m.claims[k]
		for _, s := range all[1:] {
			m.log.Warn("two Services claim the same address: the older one has it, of two as old the one whose name sorts first",
				"claim", k.String(), "has", all[0].key.String(), "without", s.key.String())
		}
	}
}
