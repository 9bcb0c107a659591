package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// partOfTerm is the part that a term gives to a key or to data.
func partOfTerm(t term) part {
	info := t.info()
	return part{typ: info.typ, size: int(info.bytes()), bits: int(info.width), order: info.order}
}

// selector evaluates a selector. What it depends on is matched before.
func (r *ruleCompiler) selector(x syntax.Expr) (term, error) {
	switch x := x.(type) {
	case *syntax.Payload:
		return r.payload(x)
	case *syntax.Exthdr:
		return r.exthdr(x)
	case *syntax.RawPayload:
		return r.rawPayload(x)
	case *syntax.Meta:
		return r.meta(x)
	case *syntax.CT:
		return r.ct(x)
	case *syntax.FIB:
		return r.fib(x)
	case *syntax.Numgen:
		return r.numgen(x)
	case *syntax.Rt, *syntax.Socket, *syntax.OSF, *syntax.IPsec, *syntax.Hash:
		return r.host(x)
	default:
		return nil, errorAt(x.Position(), "%s is no selector: want header fields, meta, ct, fib or numgen", syntax.PrintExpr(x))
	}
}

// meta evaluates packet metadata.
func (r *ruleCompiler) meta(x *syntax.Meta) (term, error) {
	key := metaByName(x.Key)
	if key == nil {
		names := make([]string, len(metaSelectors))
		for i := range metaSelectors {
			names[i] = metaSelectors[i].name
		}
		return nil, errorAt(x.KeyPos, "unknown meta key %q: want %s", x.Key, strings.Join(names, ", "))
	}
	if key.name == "nfproto" && r.ctx.family != nft.FamilyInet {
		return nil, errorAt(x.Pos, "meta nfproto is only useful in the inet family")
	}
	switch {
	case key.unreadable:
		return nil, errorAt(x.Pos, "meta %s can be set, not matched", key.name)
	case key.bridge && r.ctx.family != nft.FamilyBridge:
		return nil, errorAt(x.Pos, "meta %s exists in the bridge family only", key.name)
	}
	return &metaTerm{termInfo{pos: x.Pos, typ: key.typ, bits: key.bits, width: key.bits, order: key.order}, key}, nil
}

// ct evaluates conntrack information.
func (r *ruleCompiler) ct(x *syntax.CT) (term, error) {
	key := ctByName(x.L3, x.Key)
	if key == nil {
		names := make([]string, len(ctSelectors))
		for i := range ctSelectors {
			names[i] = ctSelectors[i].name
		}
		return nil, errorAt(x.KeyPos, "unknown ct key %q: want %s", x.Key, strings.Join(names, ", "))
	}
	t := &ctTerm{termInfo{pos: x.Pos, typ: key.typ, bits: key.bits, order: key.order}, key, noDirection}
	switch {
	case x.Dir == "" && key.direction == directionMust:
		return nil, errorAt(x.KeyPos, "ct %s needs a direction: write ct original %s or ct reply %s", key.name, key.name, key.name)
	case key.unreadable:
		return nil, errorAt(x.Pos, "ct %s can be set, not matched", key.name)
	case x.Dir != "" && key.direction == directionNever:
		return nil, errorAt(x.Pos, "ct %s has no direction: write ct %s", key.name, key.name)
	default:
		t.dir = directionOf(x.Dir)
	}
	if err := r.ctProtocol(t); err != nil {
		return nil, err
	}
	t.width = t.bits
	return t, nil
}

// ctProtocol gives the keys whose type depends on a protocol their type, and
// checks that the rule has not matched another one.
func (r *ruleCompiler) ctProtocol(t *ctTerm) error {
	network := r.ctx.at(layerNetwork)
	switch t.key.name {
	case "saddr", "daddr":
		switch network {
		case &headerIP:
			t.typ, t.bits = datatype.IPv4Addr, 32
		case &headerIP6:
			t.typ, t.bits = datatype.IPv6Addr, 128
		default:
			return errorAt(t.pos, "ct %s does not tell the protocol: write \"ip %s\" or \"ip6 %s\"", t.key.name, t.key.name, t.key.name)
		}
	case "proto-src", "proto-dst":
		t.typ = datatype.InetService
		if r.ctx.at(layerTransport) == nil || r.ctx.at(layerTransport) == &headerUnknown {
			return errorAt(t.pos, "ct %s has a meaning only after a match of the transport protocol: write meta l4proto tcp or so before it", t.key.name)
		}
	default:
		if p := t.key.protocol; p != nil && (network == &headerIP || network == &headerIP6) && network != p {
			return errorAt(t.pos, "conflicting protocols: the rule matches %s, and %s cannot match then", network.name, p.name)
		}
	}
	return nil
}

// fib evaluates a routing lookup.
func (r *ruleCompiler) fib(x *syntax.FIB) (term, error) {
	t := &fibTerm{termInfo: termInfo{pos: x.Pos}, inputs: x.Inputs, result: x.Result}
	has := func(name string) bool { return slices.Contains(x.Inputs, name) }
	for _, name := range x.Inputs {
		if !slices.Contains(fibInputs[:], name) {
			return nil, errorAt(x.Pos, "fib: unknown input %q", name)
		}
	}
	switch {
	case has("saddr") == has("daddr"):
		return nil, errorAt(x.Pos, "fib: want one of saddr and daddr")
	case has("iif") && has("oif"):
		return nil, errorAt(x.Pos, "fib: iif and oif exclude each other")
	}
	p, ok := fibPart(uint32(max(slices.Index(fibResults[:], x.Result), 0)))
	switch {
	case !ok:
		return nil, errorAt(x.Pos, "fib: unknown result %q: want type, oif or oifname", x.Result)
	case x.Result != "type" && has("oif"):
		return nil, errorAt(x.Pos, "fib: oif cannot be both input and result")
	}
	t.typ, t.bits, t.width, t.order = p.typ, uint32(p.bits), uint32(p.bits), p.order
	return t, nil
}

// numgen evaluates a number generator.
func (r *ruleCompiler) numgen(x *syntax.Numgen) (term, error) {
	if x.Mode != "random" && x.Mode != "inc" {
		return nil, errorAt(x.Pos, "numgen: unknown mode %q: want random or inc", x.Mode)
	}
	if x.Mod == 0 {
		return nil, errorAt(x.Pos, "numgen: the modulus is 0: want 1 or more")
	}
	if uint64(x.Mod)+uint64(x.Offset)-1 > 1<<32-1 {
		return nil, errorAt(x.Pos, "numgen: offset %d is too large for modulus %d", x.Offset, x.Mod)
	}
	info := termInfo{pos: x.Pos, typ: datatype.Integer, bits: 32, width: 32, order: datatype.HostEndian}
	return &numgenTerm{info, x.Mode == "random", x.Mod, x.Offset}, nil
}

// maxValue returns the greatest value of a selector whose range is known to be
// smaller than its type, as nft checks it.
func maxValue(t term) (uint64, bool) {
	switch t := t.(type) {
	case *numgenTerm:
		return uint64(t.mod) + uint64(t.offset) - 1, true
	case *hashTerm:
		return uint64(t.mod) + uint64(t.offset) - 1, true
	case *metaTerm:
		return 6, t.key.key == metaTimeDay
	case *socketTerm:
		return 1, t.key.flag
	}
	return 0, false
}

// describe prints an expression for messages, shortened.
func describe(x syntax.Expr) string {
	s := syntax.PrintExpr(x)
	if len(s) > 40 {
		s = s[:37] + "..."
	}
	return fmt.Sprintf("%q", s)
}
