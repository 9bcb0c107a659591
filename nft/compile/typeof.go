package compile

import (
	"math"
	"slices"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// Numbers that nft 1.0.6 stores for the expressions of a typeof declaration
// (enum expr_types of its expression.h).
const (
	exprVerdict = 1
	exprPayload = 7
	exprMeta    = 9
	exprCT      = 12
	exprConcat  = 13
	exprNumgen  = 23
	exprSocket  = 10
	exprOSF     = 11
	exprHash    = 24
	exprRt      = 25
	exprXfrm    = 27
	exprFIB     = 26
)

// parseTypeOf reads "ip daddr . th dport : verdict". Errors are a
// *syntax.Error or an *Error.
func parseTypeOf(text string) (*declaration, error) {
	t, err := syntax.ParseTypeOf(text)
	if err != nil {
		return nil, err
	}
	d := &declaration{word: "typeof", text: text, isMap: t.Map, verdict: t.Verdict, interval: t.Interval}
	if d.key, d.keyExprs, err = typeOfList(text, t.Key); err != nil {
		return nil, err
	}
	d.data, d.dataExprs, err = typeOfList(text, t.Data)
	return d, err
}

func typeOfList(text string, list []syntax.Expr) ([]part, []typeOfExpr, error) {
	var parts []part
	var exprs []typeOfExpr
	for _, x := range list {
		p, e, err := typeOfSelector(x)
		if err != nil {
			err.Line = syntax.SourceLine(text, err.Pos.Line)
			return nil, nil, err
		}
		parts, exprs = append(parts, p), append(exprs, e)
	}
	return parts, exprs, nil
}

// typeOfSelector returns the type of a selector, and how nft stores it.
func typeOfSelector(x syntax.Expr) (part, typeOfExpr, *Error) {
	switch x := x.(type) {
	case *syntax.Payload:
		return typeOfPayload(x)
	case *syntax.Exthdr:
		return typeOfExthdr(x)
	case *syntax.RawPayload:
		return typeOfRawPayload(x)
	case *syntax.Meta:
		key := metaByName(x.Key)
		if key == nil {
			return part{}, typeOfExpr{}, errorAt(x.KeyPos, "unknown key %q of meta", x.Key)
		}
		return selectorPart(key.typ, key.bits, key.order), typeOfExpr{exprMeta, []typeOfAttr{{0, uint32(key.key)}}}, nil
	case *syntax.CT:
		return typeOfCT(x)
	case *syntax.FIB:
		return typeOfFIB(x)
	case *syntax.Numgen:
		mode := uint32(0)
		if x.Mode == "random" {
			mode = 1
		}
		return numgenPart, typeOfExpr{exprNumgen, []typeOfAttr{{0, mode}, {1, x.Mod}, {2, x.Offset}}}, nil
	case *syntax.Rt, *syntax.Socket, *syntax.OSF, *syntax.IPsec, *syntax.Hash:
		return typeOfHost(x)
	default:
		return part{}, typeOfExpr{}, errorAt(x.Position(), "this is no selector: want a header field, meta, ct, fib or numgen")
	}
}

// selectorPart is the part that a selector's value takes.
func selectorPart(t *datatype.Type, bits uint32, order datatype.Order) part {
	return part{typ: t, size: int(bits+7) / 8, bits: int(bits), order: order}
}

func typeOfPayload(x *syntax.Payload) (part, typeOfExpr, *Error) {
	h := headerByName(x.Proto)
	i := slices.IndexFunc(payloadDescs[:], func(d payloadDesc) bool { return d.proto == x.Proto })
	if h == nil || i < 0 {
		return part{}, typeOfExpr{}, errorAt(x.Pos, "unknown header %q", x.Proto)
	}
	f := h.field(x.Field)
	number := slices.Index(payloadDescs[i].fields, x.Field) + 1
	if f == nil || number == 0 {
		return part{}, typeOfExpr{}, errorAt(x.FieldPos, "unknown field %q of %s", x.Field, x.Proto)
	}
	e := typeOfExpr{exprPayload, []typeOfAttr{{0, payloadDescs[i].id}, {1, uint32(number)}}}
	if f.typ == datatype.Integer {
		// The width of an integer is not in its type.
		e.attrs = append(e.attrs, typeOfAttr{4, f.bits})
	}
	return selectorPart(f.typ, f.bits, datatype.BigEndian), e, nil
}

// typeOfRawPayload returns what nft stores of raw payload: its place, or the
// port that it is.
func typeOfRawPayload(x *syntax.RawPayload) (part, typeOfExpr, *Error) {
	h, f, l, err := rawField(x)
	if err != nil {
		return part{}, typeOfExpr{}, err
	}
	if h == &headerTH {
		return typeOfPayload(&syntax.Payload{Pos: x.Pos, FieldPos: x.Pos, Proto: h.name, Field: f.name})
	}
	e := typeOfExpr{exprPayload, []typeOfAttr{{0, 0}, {1, 0}, {2, uint32(l)}, {3, x.Offset}, {4, x.Bits}}}
	return selectorPart(f.typ, f.bits, datatype.BigEndian), e, nil
}

func typeOfCT(x *syntax.CT) (part, typeOfExpr, *Error) {
	key := ctByName(x.L3, x.Key)
	switch {
	case key == nil:
		return part{}, typeOfExpr{}, errorAt(x.KeyPos, "unknown key %q of ct", x.Key)
	case key.typ == nil && (x.Key == "saddr" || x.Key == "daddr"):
		return part{}, typeOfExpr{}, errorAt(x.KeyPos, "the type of ct %s depends on the packet: write ct %s ip %s or ct %s ip6 %s", x.Key, x.Dir, x.Key, x.Dir, x.Key)
	case key.typ == nil:
		return part{}, typeOfExpr{}, errorAt(x.KeyPos, "ct %s has no type that nft(8) could list: use \"type inet_service\"", x.Key)
	}
	dir := uint32(math.MaxUint32)
	switch x.Dir {
	case "original":
		dir = directionOriginal
	case "reply":
		dir = directionReply
	}
	return selectorPart(key.typ, key.bits, key.order), typeOfExpr{exprCT, []typeOfAttr{{0, key.key}, {1, dir}}}, nil
}

func typeOfFIB(x *syntax.FIB) (part, typeOfExpr, *Error) {
	result := slices.Index(fibResults[:], x.Result)
	flags := uint32(0)
	for _, in := range x.Inputs {
		i := slices.Index(fibInputs[:], in)
		if i < 0 {
			return part{}, typeOfExpr{}, errorAt(x.Pos, "unknown input %q of fib", in)
		}
		flags |= 1 << i
	}
	p, ok := fibPart(uint32(max(result, 0)))
	if !ok {
		return part{}, typeOfExpr{}, errorAt(x.Pos, "unknown result %q of fib", x.Result)
	}
	return p, typeOfExpr{exprFIB, []typeOfAttr{{0, uint32(result)}, {1, flags}}}, nil
}

// numgenPart is the type of a number generator.
var numgenPart = selectorPart(datatype.Integer, 32, datatype.HostEndian)

// fibPart is the type of a fib result, an index of fibResults.
func fibPart(result uint32) (part, bool) {
	if result >= uint32(len(fibResults)) {
		return part{}, false
	}
	switch fibResults[result] {
	case "oif":
		return selectorPart(datatype.IfIndex, 32, datatype.HostEndian), true
	case "oifname":
		return selectorPart(datatype.String, 8*datatype.IfNameSize, datatype.HostEndian), true
	case "type":
		return selectorPart(datatype.FIBAddrType, 32, datatype.HostEndian), true
	default:
		return part{}, false
	}
}

// fibResults are enum nft_fib_result, fibInputs the bits of enum
// nft_fib_flags, of linux/netfilter/nf_tables.h.
var (
	fibResults = [...]string{1: "oif", 2: "oifname", 3: "type"}
	fibInputs  = [...]string{"saddr", "daddr", "mark", "iif", "oif"}
)

// payloadDesc is a protocol as nft numbers it: enum proto_desc_id of its
// proto.h, and the fields of its header from 1.
type payloadDesc struct {
	proto  string
	id     uint32
	fields []string
}

// payloadDescs are the protocols of nft 1.0.6.
var payloadDescs = [...]payloadDesc{
	{"ah", 1, []string{"nexthdr", "hdrlength", "reserved", "spi", "sequence"}},
	{"esp", 2, []string{"spi", "sequence"}},
	{"comp", 3, []string{"nexthdr", "flags", "cpi"}},
	{"icmp", 4, []string{"type", "code", "checksum", "id", "sequence", "gateway", "mtu"}},
	{"igmp", 5, []string{"type", "checksum", "mrt", "group"}},
	{"udp", 6, []string{"sport", "dport", "length", "checksum"}},
	{"udplite", 7, []string{"sport", "dport", "csumcov", "checksum"}},
	{"tcp", 8, []string{"sport", "dport", "sequence", "ackseq", "doff", "reserved", "flags", "window", "checksum", "urgptr"}},
	{"dccp", 9, []string{"sport", "dport", "type"}},
	{"sctp", 10, []string{"sport", "dport", "vtag", "checksum"}},
	{"th", 11, []string{"sport", "dport"}},
	{"ip", 12, []string{"version", "hdrlength", "dscp", "ecn", "length", "id", "frag-off", "ttl", "protocol", "checksum", "saddr", "daddr"}},
	{"ip6", 13, []string{"version", "dscp", "ecn", "flowlabel", "length", "nexthdr", "hoplimit", "saddr", "daddr"}},
	{"icmpv6", 14, []string{"type", "code", "checksum", "param-problem", "mtu", "id", "sequence", "max-delay"}},
	{"arp", 15, []string{"htype", "ptype", "hlen", "plen", "operation", "saddr ether", "saddr ip", "daddr ether", "daddr ip"}},
	{"vlan", 16, []string{"pcp", "dei", "cfi", "id", "type"}},
	{"ether", 17, []string{"daddr", "saddr", "type"}},
}
