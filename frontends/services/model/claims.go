package model

import (
	"cmp"
	"log/slog"
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
	// winners
	holders map[claim]*service
	// losers, in the order of succession
	others map[claim][]*service
	// current number of losers
	lost   int
	log    *slog.Logger
	notify func(Notice)
}

func newClaims(cfg *Config) claims {
	return claims{holders: make(map[claim]*service), others: make(map[claim][]*service), log: cfg.Logger, notify: cfg.Notify}
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

// resolve replaces the claims of dirty Services by the latest ones, adds Services that win or lose a claim to
// dirty, and returns the work.
func (c *claims) resolve(dirty map[*record]struct{}) (work uint64) {
	// previous claimants, the winner first
	before := make(map[claim][]*record)
	remember := func(k claim) {
		if _, seen := before[k]; seen {
			return
		}
		var had []*record
		if h := c.holders[k]; h != nil {
			had = append(had, h.of)
		}
		for _, s := range c.others[k] {
			had = append(had, s.of)
		}
		before[k] = had
	}
	work = uint64(len(dirty))
	for r := range dirty {
		was, now := r.claimed, r.parsed
		if was == now {
			continue
		}
		if was != nil {
			was.eachClaim(func(k claim) { remember(k); c.remove(k, was) })
		}
		if now != nil {
			now.eachClaim(func(k claim) { remember(k); c.add(k, now) })
		}
		r.claimed = now
	}
	for k, had := range before {
		if len(had) > 0 {
			dirty[had[0]] = struct{}{}
		}
		if h := c.holders[k]; h != nil {
			dirty[h.of] = struct{}{}
		}
		c.lost += len(c.others[k]) - max(0, len(had)-1)
	}
	c.report(before)
	return work + uint64(len(before))
}

// external returns the won addresses of a port. Usually these are all, and all ports share one list.
func (c *claims) external(s *service, p *servicePort, f Family) []External {
	all := s.external[f]
	has := func(e External) bool {
		return c.holds(claim{addr: e.Addr, protocol: p.protocol, port: p.number}, s)
	}
	lost := func(e External) bool { return !has(e) }
	if !slices.ContainsFunc(all, lost) {
		return all
	}
	if !slices.ContainsFunc(all, has) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), lost)
}
