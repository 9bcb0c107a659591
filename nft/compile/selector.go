package compile

import (
	"fmt"
	"slices"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

func partOfTerm(t term) set.Part {
	info := t.info()
	return set.Part{Type: info.typ, Size: int(info.bytes()), Bits: int(info.width), Order: info.order}
}

func (r *ruleCompiler) meta(x *syntax.Meta) term {
	key := must(selector.KeyOf(x))
	if key.Name == "nfproto" && r.ctx.family != nft.FamilyInet {
		return fail(x.Pos, "meta nfproto is only useful in the inet family")
	}
	switch {
	case key.Unreadable:
		return fail(x.Pos, "meta %s can be set, not matched", key.Name)
	case key.Bridge && r.ctx.family != nft.FamilyBridge:
		return fail(x.Pos, "meta %s exists in the bridge family only", key.Name)
	}
	return &keyTerm{termInfo: keyInfo(x.Pos, key), key: key}
}

func (r *ruleCompiler) ct(x *syntax.CT) term {
	key := must(selector.KeyOf(x))
	t := &keyTerm{termInfo: keyInfo(x.Pos, key), key: key, ct: true, dir: selector.ParseDirection(x.Dir)}
	switch {
	case x.Dir == "" && key.Direction == selector.DirectionMust:
		return fail(x.KeyPos, "ct %s needs a direction: write ct original %s or ct reply %s", key.Name, key.Name, key.Name)
	case key.Unreadable:
		return fail(x.Pos, "ct %s can be set, not matched", key.Name)
	case x.Dir != "" && key.Direction == selector.DirectionNever:
		return fail(x.Pos, "ct %s has no direction: write ct %s", key.Name, key.Name)
	}
	r.ctProtocol(t)
	t.width = t.bits
	return t
}

// ctProtocol sets the types that depend on a protocol, and rejects a different matched protocol.
func (r *ruleCompiler) ctProtocol(t *keyTerm) {
	network := r.ctx.at(selector.LayerNetwork)
	switch t.key.Name {
	case "saddr", "daddr":
		switch network {
		case &selector.HeaderIP:
			t.typ, t.bits = datatype.IPv4Addr, 32
		case &selector.HeaderIP6:
			t.typ, t.bits = datatype.IPv6Addr, 128
		default:
			fail(t.pos, "ct %s does not tell the protocol: write \"ip %s\" or \"ip6 %s\"", t.key.Name, t.key.Name, t.key.Name)
		}
	case "proto-src", "proto-dst":
		t.typ = datatype.InetService
		if r.ctx.at(selector.LayerTransport) == nil || r.ctx.at(selector.LayerTransport) == &selector.HeaderUnknown {
			fail(t.pos, "ct %s has a meaning only after a match of the transport protocol: write meta l4proto tcp or so before it", t.key.Name)
		}
	default:
		if p := t.key.Protocol; p != nil && (network == &selector.HeaderIP || network == &selector.HeaderIP6) && network != p {
			fail(t.pos, "conflicting protocols: the rule matches %s, and %s cannot match then", network.Name, p.Name)
		}
	}
}

func (r *ruleCompiler) fib(x *syntax.FIB) term {
	t := &fibTerm{termInfo: termInfo{pos: x.Pos}, inputs: x.Inputs, result: x.Result}
	has := func(name string) bool { return slices.Contains(x.Inputs, name) }
	switch {
	case has("saddr") == has("daddr"):
		return fail(x.Pos, "fib: want one of saddr and daddr")
	case has("iif") && has("oif"):
		return fail(x.Pos, "fib: iif and oif exclude each other")
	}
	if x.Result != "type" && has("oif") {
		return fail(x.Pos, "fib: oif cannot be both input and result")
	}
	p, _ := set.FIBPart(uint32(slices.Index(expr.FibResults, x.Result)))
	t.typ, t.bits, t.width, t.order = p.Type, uint32(p.Bits), uint32(p.Bits), p.Order
	return t
}

// nft checks a smaller range than the type's for some selectors.
func maxValue(t term) (uint64, bool) {
	switch t := t.(type) {
	case *numberTerm:
		return uint64(t.mod) + uint64(t.offset) - 1, true
	case *keyTerm:
		return 6, !t.ct && t.key.Key == selector.MetaTimeDay
	case *hostTerm:
		return 1, t.flag
	}
	return 0, false
}

func describe(x syntax.Expr) string {
	s := syntax.PrintExpr(x)
	if len(s) > 40 {
		s = s[:37] + "..."
	}
	return fmt.Sprintf("%q", s)
}
