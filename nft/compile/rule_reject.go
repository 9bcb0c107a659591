package compile

import (
	"cmp"

	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

type rejectKind struct {
	typ uint32
	// network protocol of the answer, nil for any
	header *selector.Header
	codes  *datatype.Type
	// "port unreachable"
	code uint8
}

// By the words after "with"; codes from linux/icmp.h, linux/icmpv6.h and enum nft_reject_inet_code.
var rejectKinds = map[string]rejectKind{
	"icmp":      {unix.NFT_REJECT_ICMP_UNREACH, &selector.HeaderIP, datatype.ICMPCode, 3},
	"icmpv6":    {unix.NFT_REJECT_ICMP_UNREACH, &selector.HeaderIP6, datatype.ICMPv6Code, 4},
	"icmpx":     {unix.NFT_REJECT_ICMPX_UNREACH, nil, datatype.ICMPxCode, 1},
	"tcp reset": {typ: unix.NFT_REJECT_TCP_RST},
}

func (r *ruleCompiler) reject(s *syntax.Reject) {
	kind := r.rejectKind(s)
	code := kind.code
	if s.Code != nil {
		c := r.single(s.Code, want{typ: kind.codes, width: 8, order: datatype.BigEndian})
		code = uint8(c.v.lo)
	}
	r.checkReject(s, kind)
	r.rejectDependency(s, kind)
	r.addLibrary(&google.Reject{Type: kind.typ, Code: code})
}

// The default answer suits the known network protocol, or both.
func (r *ruleCompiler) rejectKind(s *syntax.Reject) rejectKind {
	if kind, ok := rejectKinds[s.With]; ok {
		return kind
	}
	known := r.ctx.at(selector.LayerNetwork)
	if own := ownNetwork(r.ctx.family); own != nil {
		known = own
	}
	switch {
	case known == &selector.HeaderIP:
		return rejectKinds["icmp"]
	case known == &selector.HeaderIP6:
		return rejectKinds["icmpv6"]
	case known != nil:
		fail(s.Pos, "reject: the rule matches %s, and no answer is possible then", known.Name)
	}
	return rejectKinds["icmpx"]
}

func ownNetwork(family nft.Family) *selector.Header {
	switch family {
	case nft.FamilyIP:
		return &selector.HeaderIP
	case nft.FamilyIP6:
		return &selector.HeaderIP6
	default:
		return nil
	}
}

func (r *ruleCompiler) checkReject(s *syntax.Reject, kind rejectKind) {
	network, transport := r.ctx.at(selector.LayerNetwork), r.ctx.at(selector.LayerTransport)
	if kind.typ == unix.NFT_REJECT_TCP_RST && transport != nil && transport != &selector.HeaderTCP {
		fail(s.Pos, "reject with tcp reset: the rule matches %s, and this answer is not possible then", transport.Name)
	}
	switch r.ctx.family {
	case nft.FamilyARP:
		fail(s.Pos, "reject is not possible in tables of family arp")
	case nft.FamilyIP, nft.FamilyIP6:
		if kind.typ == unix.NFT_REJECT_ICMPX_UNREACH {
			fail(s.Pos, "reject with icmpx is not possible in tables of family %s: use icmp or icmpv6", r.ctx.family)
		}
		if kind.header != nil && kind.header != ownNetwork(r.ctx.family) {
			fail(s.Pos, "reject with %s: the table is of family %s, and this answer is not possible there", s.With, r.ctx.family)
		}
		return
	case nft.FamilyInet:
		if kind.header == nil {
			return
		}
	}
	r.checkRejectNetwork(s, kind, network)
}

// checkRejectNetwork rejects answers that do not suit the network protocol matched by the rule.
func (r *ruleCompiler) checkRejectNetwork(s *syntax.Reject, kind rejectKind, network *selector.Header) {
	link := r.ctx.at(selector.LayerLink)
	if r.ctx.family != nft.FamilyInet && link == &selector.HeaderUnknown {
		fail(s.Pos, "reject: the rule matches a link layer that cannot be answered")
	}
	if network == nil {
		return
	}
	_, carried := link.Number(network)
	if !carried || network != &selector.HeaderIP && network != &selector.HeaderIP6 || kind.header != nil && kind.header != network {
		fail(s.Pos, "reject with %s: the rule matches %s, and this answer is not possible then", cmp.Or(s.With, "icmp"), network.Name)
	}
}

// The dependency goes to the head of the rule, so that the rule logs and counts only rejected
// packets.
func (r *ruleCompiler) rejectDependency(s *syntax.Reject, kind rejectKind) {
	need := kind.header
	if kind.typ == unix.NFT_REJECT_TCP_RST {
		need = &selector.HeaderTCP
	}
	if need == nil || r.ctx.at(need.Layer) != nil {
		return
	}
	r.first(func() { r.locate(need, s.Pos) })
}
