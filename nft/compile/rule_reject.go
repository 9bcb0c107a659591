package compile

import (
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// rejectStmt answers a packet.
type rejectStmt struct{ *expr.Reject }

// generate is statement's.
func (s *rejectStmt) generate(g *generator) error {
	g.emit(s.Reject)
	return nil
}

// rejectKind is a way to answer.
type rejectKind struct {
	typ uint32
	// header is the network protocol of the answer, nil for any.
	header *header
	codes  *datatype.Type
	// code is the one for "port unreachable".
	code uint8
}

// The ways to answer. The codes of port unreachable are those of linux/icmp.h,
// linux/icmpv6.h and enum nft_reject_inet_code.
var (
	rejectICMP   = rejectKind{unix.NFT_REJECT_ICMP_UNREACH, &headerIP, datatype.ICMPCode, 3}
	rejectICMPv6 = rejectKind{unix.NFT_REJECT_ICMP_UNREACH, &headerIP6, datatype.ICMPv6Code, 4}
	rejectICMPx  = rejectKind{unix.NFT_REJECT_ICMPX_UNREACH, nil, datatype.ICMPxCode, 1}
	rejectTCP    = rejectKind{typ: unix.NFT_REJECT_TCP_RST}
)

// reject evaluates a reject statement.
func (r *ruleCompiler) reject(s *syntax.Reject) error {
	if r.ctx.family == nft.FamilyARP {
		return errorAt(s.Pos, "reject is not possible in tables of family arp")
	}
	kind, err := r.rejectKind(s)
	if err != nil {
		return err
	}
	code := kind.code
	if s.Code != nil {
		c, err := r.single(s.Code, want{typ: kind.codes, width: 8, order: datatype.BigEndian})
		if err != nil {
			return err
		}
		code = uint8(c.v.lo)
	}
	if err := r.rejectDependency(s, kind); err != nil {
		return err
	}
	r.add(&rejectStmt{&expr.Reject{Type: kind.typ, Code: code}})
	return nil
}

// rejectKind tells which answer is meant.
func (r *ruleCompiler) rejectKind(s *syntax.Reject) (rejectKind, error) {
	switch s.With {
	case "icmp":
		return rejectICMP, nil
	case "icmpv6":
		return rejectICMPv6, nil
	case "icmpx":
		if r.ctx.family == nft.FamilyIP || r.ctx.family == nft.FamilyIP6 {
			return rejectKind{}, errorAt(s.Pos, "reject with icmpx is not possible in tables of family %s: use icmp or icmpv6", r.ctx.family)
		}
		return rejectICMPx, nil
	case "tcp reset":
		return rejectTCP, nil
	case "":
	default:
		return rejectKind{}, errorAt(s.Pos, "reject with %s is not supported", s.With)
	}
	switch r.ctx.at(layerNetwork) {
	case &headerIP:
		return rejectICMP, nil
	case &headerIP6:
		return rejectICMPv6, nil
	default:
		return rejectICMPx, nil
	}
}

// rejectDependency makes sure that the packet can be answered so. Unlike other
// dependencies this one goes to the head of the rule, so that nothing is
// logged or counted that is not rejected then.
func (r *ruleCompiler) rejectDependency(s *syntax.Reject, kind rejectKind) error {
	var need *header
	switch {
	case kind.typ == unix.NFT_REJECT_TCP_RST:
		need = &headerTCP
	case kind.header != nil:
		need = kind.header
	default:
		return nil
	}
	if known := r.ctx.at(need.layer); known != nil {
		if known != need {
			return errorAt(s.Pos, "reject with %s: the rule matches %s, and this answer is not possible then", s.With, known.name)
		}
		return nil
	}
	n := len(r.stmts)
	if err := r.require(need, s.Pos); err != nil {
		return err
	}
	deps := slices.Clone(r.stmts[n:])
	r.stmts = slices.Concat(deps, r.stmts[:n])
	return nil
}
