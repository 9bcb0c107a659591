package compile

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// hostTerm loads a packet's route, socket, IPsec state, or the sender's operating system.
type hostTerm struct {
	termInfo
	expr func(reg uint32) expr.Expr
	// route: rt; flag: values of 0 or 1
	route, flag bool
}

const (
	// the deepest ancestor of a cgroup (nft_socket_init)
	maxCgroupLevel = 255
	// the last state of a packet (XFRM_MAX_DEPTH)
	maxSpnum = 5
)

func newHostTerm(k *selector.Key, pos syntax.Pos, e func(reg uint32) expr.Expr) *hostTerm {
	return &hostTerm{termInfo: keyInfo(pos, k), expr: e, flag: k.Flag}
}

// The kernel has no route or socket of packets in these families.
func (r *ruleCompiler) routed(what string, pos syntax.Pos) {
	switch r.ctx.family {
	case nft.FamilyIP, nft.FamilyIP6, nft.FamilyInet:
	default:
		fail(pos, "%s is possible in the families ip, ip6 and inet only", what)
	}
}

// rt gives the next hop the network protocol that the rule has matched, if any.
func (r *ruleCompiler) rt(x *syntax.Rt) term {
	r.routed("rt", x.Pos)
	known := *x
	if x.Key == "nexthop" && x.Family != "ip6" {
		switch r.ctx.at(selector.LayerNetwork) {
		case &selector.HeaderIP:
			known.Family = "ip"
		case &selector.HeaderIP6:
			known.Family = "ip6"
		}
	}
	if x.Key == "nexthop" && known.Family == "ip6" && r.ctx.family == nft.FamilyIP {
		fail(x.Pos, "rt ip6 nexthop cannot match in the ip family")
	}
	key := must(selector.KeyOf(&known))
	t := newHostTerm(key, x.Pos, func(reg uint32) expr.Expr {
		return expr.Library{Any: &google.Rt{Key: google.RtKey(key.Key), Register: reg}}
	})
	t.route = true
	return t
}

func (r *ruleCompiler) socket(x *syntax.Socket) term {
	key := must(selector.KeyOf(x))
	r.routed("socket", x.Pos)
	if x.Level > maxCgroupLevel {
		fail(x.KeyPos, "cgroup level %d: the greatest is %d", x.Level, maxCgroupLevel)
	}
	return newHostTerm(key, x.Pos, func(reg uint32) expr.Expr {
		return &expr.Socket{Key: key.Key, Level: x.Level, Register: reg}
	})
}

// words after "osf ttl"
var ttlChecks = map[string]uint8{"loose": expr.OSFTTLLess, "skip": expr.OSFTTLNoCheck}

// The kernel knows only operating systems with a fingerprint loaded by nfnl_osf(8) or nft(8).
func (r *ruleCompiler) osf(x *syntax.OSF) term {
	r.routed("osf", x.Pos)
	info := termInfo{pos: x.Pos, typ: set.OsfPart.Type, bits: 8 * set.MaxGenre, width: 8 * set.MaxGenre, order: set.OsfPart.Order}
	return &hostTerm{termInfo: info, expr: func(reg uint32) expr.Expr {
		return &expr.OSF{Register: reg, TTL: ttlChecks[x.TTL], Version: x.Key == "version"}
	}}
}

func (r *ruleCompiler) ipsec(x *syntax.IPsec) term {
	key := must(selector.KeyOf(x))
	r.routed("ipsec", x.Pos)
	if x.Spnum > maxSpnum {
		fail(x.Pos, "ipsec: spnum %d: the kernel keeps states 0 to %d", x.Spnum, maxSpnum)
	}
	return newHostTerm(key, x.Pos, func(reg uint32) expr.Expr {
		return &expr.Xfrm{Key: key.Key, Dir: selector.XfrmDirection(x.Dir), Spnum: x.Spnum, Register: reg}
	})
}
