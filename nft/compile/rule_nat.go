package compile

import (
	"strings"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

type natStmt struct {
	kind   string
	family uint32
	// nil if not given
	addr, port term
	// addr is a map of addresses and ports
	both  bool
	flags uint32
}

func (r *ruleCompiler) nat(s *syntax.NAT) {
	out := &natStmt{kind: s.Kind, flags: expr.Flags(s.Flags, expr.NATFlags)}
	r.natFamily(s, out)
	if s.Prefix && len(s.Flags) == 0 {
		// In the grammar of nft 1.0.6, flags can replace this one.
		out.flags |= unix.NF_NAT_RANGE_NETMAP
	}
	if s.Addr != nil {
		r.natAddr(s, out)
	}
	switch {
	case s.Port != nil && out.both:
		fail(s.Port.Position(), "%s: the map has the port already", s.Kind)
	case s.Port != nil:
		r.checkTransport(s.Port.Position())
		out.port = r.natValue(s.Port, r.eval(s.Port, wantPort), wantPort)
		out.flags |= unix.NF_NAT_RANGE_PROTO_SPECIFIED
	case s.Addr == nil && (s.Kind == "dnat" || s.Kind == "snat"):
		fail(s.Pos, "%s needs an address or a port", s.Kind)
	}
	r.add(out)
}

func (r *ruleCompiler) natFamily(s *syntax.NAT, out *natStmt) {
	network := r.ctx.at(selector.LayerNetwork)
	given := familyNumber(s.Family)
	switch r.ctx.family {
	case nft.FamilyIP, nft.FamilyIP6:
		out.family = uint32(r.ctx.family)
		if given != 0 && given != out.family {
			fail(s.Pos, "conflicting protocols: %s to %s in a table of family %s", s.Kind, s.Family, r.ctx.family)
		}
	case nft.FamilyInet:
		switch {
		case s.Addr == nil:
			out.family = unix.NFPROTO_INET
		case given != 0:
			out.family = given
		case network == &selector.HeaderIP:
			out.family = unix.NFPROTO_IPV4
		case network == &selector.HeaderIP6:
			out.family = unix.NFPROTO_IPV6
		default:
			fail(s.Pos, "%s: ip or ip6 must be given with an address in tables of family inet: write %s ip to or %s ip6 to", s.Kind, s.Kind, s.Kind)
		}
	default:
		fail(s.Pos, "%s is possible in tables of family ip, ip6 and inet only", s.Kind)
	}
	if s.Addr != nil && !carries(network, out.family) {
		fail(s.Pos, "conflicting protocols: the rule matches %s, and %s translates the other", network.Name, s.Kind)
	}
}

// The address may be a map of addresses and ports.
func (r *ruleCompiler) natAddr(s *syntax.NAT, out *natStmt) {
	w := wantAddr(out.family)
	m, isMap := s.Addr.(*syntax.Map)
	both := s.AddrPort
	if isMap {
		both = r.concatData(m) || both
	}
	if both {
		if !isMap && out.family == unix.NFPROTO_IPV6 {
			fail(s.Addr.Position(), "%s: IPv6 address and port together come from a map only, nft(8) 1.0.6 aborts at others: write ADDRESS:PORT", s.Kind)
		}
		w = want{parts: []want{w, wantPort}}
	}
	t := r.eval(s.Addr, w)
	switch l, ok := t.(*lookupTerm); {
	case both && ok:
		r.natMap(s, out, m, l)
		return
	case both:
		r.natPair(s, out, t, w)
		return
	}
	out.addr = r.natValue(s.Addr, t, w)
}

// A prefix becomes a range of addresses.
func (r *ruleCompiler) natValue(x syntax.Expr, t term, w want) term {
	checkArgument(x, t, w)
	if p, ok := t.(*prefixTerm); ok {
		from, to := bounds(p)
		return &rangeTerm{p.termInfo, from, to}
	}
	return t
}

func (r *ruleCompiler) concatData(m *syntax.Map) bool {
	switch table := m.Table.(type) {
	case *syntax.SetRef:
		return len(r.named(table).Data.Names) > 1
	case *syntax.Set:
		for _, e := range table.Elems {
			if _, ok := e.Value.(*syntax.Concat); ok {
				return true
			}
		}
	}
	return false
}

func (r *ruleCompiler) natMap(s *syntax.NAT, out *natStmt, m *syntax.Map, t *lookupTerm) {
	parts, err := t.table.set.Data.Resolve()
	checkAt(m.Pos, err)
	addr := wantAddr(out.family).typ
	if len(parts) != 2 || parts[0].Type != addr || parts[1].Type != wantPort.typ {
		fail(m.Table.Position(), "datatype mismatch: %s wants a map to %s . inet_service, this one gives %s", s.Kind, addr.Name, strings.Join(t.table.set.Data.Names, " . "))
	}
	if out.family == unix.NFPROTO_IPV6 && t.table.set.DataInterval {
		fail(m.Table.Position(), "%s: a map to ranges of IPv6 addresses and ports makes nft(8) 1.0.6 use the wrong registers, which the kernel refuses: write single ports, or a map of addresses followed by a port", s.Kind)
	}
	if !matchesTransport(t.key) {
		r.checkTransport(m.Pos)
	}
	out.addr, out.both = t, true
}

func (r *ruleCompiler) natPair(s *syntax.NAT, out *natStmt, t term, w want) {
	if !w.matches(t) {
		fail(s.Addr.Position(), "datatype mismatch: want %s, %s is %s", w.name(), describe(s.Addr), typeName(t))
	}
	checkOne(s.Addr, t)
	r.checkTransport(s.Addr.Position())
	out.addr, out.both = t, true
}

// matchesTransport reports whether key contains the transport protocol, so that the map can hold
// ports.
func matchesTransport(key term) bool {
	c, ok := key.(*concatTerm)
	if !ok {
		return false
	}
	for _, p := range c.parts {
		switch p := p.(type) {
		case *payloadTerm:
			if p.layer == selector.LayerTransport && !p.header.Raw || p.field.Protocol && p.layer == selector.LayerNetwork {
				return true
			}
		case *keyTerm:
			if p.key.Layer == selector.LayerTransport {
				return true
			}
		}
	}
	return false
}

func (r *ruleCompiler) checkTransport(pos syntax.Pos) {
	if r.ctx.at(selector.LayerTransport) == nil {
		fail(pos, "a port has a meaning only after a match of the transport protocol: write meta l4proto tcp or so before it")
	}
}

// An unknown protocol carries any family.
func carries(network *selector.Header, family uint32) bool {
	return (network != &selector.HeaderIP || family == unix.NFPROTO_IPV4) && (network != &selector.HeaderIP6 || family == unix.NFPROTO_IPV6)
}

func (s *natStmt) generate(g *generator) {
	n := &expr.NAT{Type: unix.NFT_NAT_DNAT, Family: s.family, Flags: s.flags}
	if s.addr != nil {
		n.AddrMin, n.AddrMax = s.loadRange(g, s.addr)
		if l, ok := s.addr.(*lookupTerm); s.both || ok && l.table.set.DataInterval {
			s.spread(n, ok && l.table.set.DataInterval)
		}
	}
	if s.port != nil {
		n.PortMin, n.PortMax = s.loadRange(g, s.port)
	}
	switch s.kind {
	case "masquerade":
		g.emitOwn(&expr.Masq{MinPort: n.PortMin, MaxPort: n.PortMax, Flags: s.flags})
	case "redirect":
		g.emit(&google.Redir{RegisterProtoMin: n.PortMin, RegisterProtoMax: n.PortMax, Flags: s.flags})
	case "snat":
		n.Type = unix.NFT_NAT_SNAT
		g.emitOwn(n)
	default:
		g.emitOwn(n)
	}
}

func (s *natStmt) loadRange(g *generator, t term) (low, high uint32) {
	first := g.regs.take(4, t.info().pos)
	r, ok := t.(*rangeTerm)
	if !ok {
		g.load(t, first)
		return first.number(), 0
	}
	second := g.regs.take(4, r.pos)
	g.load(&constTerm{r.termInfo, r.from}, first)
	g.load(&constTerm{r.termInfo, r.to}, second)
	return first.number(), second.number()
}

// spread numbers consecutive registers: address, port and, for ranges, greatest address and
// greatest port.
func (s *natStmt) spread(n *expr.NAT, ranges bool) {
	slots := register(1)
	if s.family == unix.NFPROTO_IPV6 {
		slots = 4
	}
	at := slots
	if s.both {
		n.PortMin = at.number()
		at++
	}
	if ranges {
		n.AddrMax = at.number()
		at += slots
		if s.both {
			n.PortMax = at.number()
		}
	}
}
