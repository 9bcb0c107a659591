package set

import (
	"slices"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
	"golang.org/x/sys/unix"
)

// IsFlags reports whether values are sets of flags. For nft the type bitmask itself is a number.
func IsFlags(t *datatype.Type) bool { return t.Bitmask && t != datatype.Bitmask }

// nft 1.0.6's numbers: enum expr_types of expression.h.
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

// Errors are a *syntax.Error.
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

func typeOfList(text string, list []syntax.Expr) ([]Part, []TypeOfExpr, error) {
	var parts []Part
	var exprs []TypeOfExpr
	for _, x := range list {
		p, e, err := TypeOfSelector(x)
		if err != nil {
			err.Line = syntax.SourceLine(text, err.Pos.Line)
			return nil, nil, err
		}
		parts, exprs = append(parts, p), append(exprs, e)
	}
	return parts, exprs, nil
}

// TypeOfSelector returns the type of a selector and nft's stored form. Compare the error with nil
// before converting it to error.
func TypeOfSelector(x syntax.Expr) (Part, TypeOfExpr, *syntax.Error) {
	switch x := x.(type) {
	case *syntax.Payload:
		return typeOfPayload(x)
	case *syntax.Exthdr:
		return typeOfExthdr(x)
	case *syntax.RawPayload:
		return typeOfRawPayload(x)
	case *syntax.Meta, *syntax.CT, *syntax.Rt, *syntax.Socket, *syntax.IPsec:
		return typeOfKey(x)
	case *syntax.FIB:
		return typeOfFIB(x)
	case *syntax.Numgen:
		mode := uint32(0)
		if x.Mode == "random" {
			mode = 1
		}
		return NumgenPart, TypeOfExpr{exprNumgen, []typeOfAttr{{0, mode}, {1, x.Mod}, {2, x.Offset}}}, nil
	case *syntax.Hash:
		kind, seed, seeded := uint32(unix.NFT_HASH_JENKINS), uint32(0), uint32(0)
		if x.X == nil {
			kind = unix.NFT_HASH_SYM
		}
		if x.Seed != nil {
			seed, seeded = *x.Seed, 1
		}
		return NumgenPart, TypeOfExpr{exprHash, []typeOfAttr{{0, kind}, {1, x.Offset}, {2, x.Mod}, {3, seed}, {4, seeded}}}, nil
	case *syntax.OSF:
		return OsfPart, TypeOfExpr{expr: exprOSF}, nil
	default:
		return Part{}, TypeOfExpr{}, syntax.ErrorAt(x.Position(), "this is not a selector: want a header field, meta, ct, fib or numgen")
	}
}

func selectorPart(t *datatype.Type, bits uint32, order datatype.Order) Part {
	return Part{Type: t, Size: int(bits+7) / 8, Bits: int(bits), Order: order}
}

func typeOfPayload(x *syntax.Payload) (Part, TypeOfExpr, *syntax.Error) {
	h, f, err := selector.FieldOf(x)
	if err != nil {
		return Part{}, TypeOfExpr{}, err
	}
	i := slices.IndexFunc(h.Fields, func(f selector.Field) bool { return f.Name == x.Field })
	e := TypeOfExpr{exprPayload, []typeOfAttr{{0, h.Desc}, {1, uint32(i + 1)}}}
	if f.Type == datatype.Integer {
		// the type of an integer does not contain its width
		e.attrs = append(e.attrs, typeOfAttr{4, f.Bits})
	}
	return selectorPart(f.Type, f.Bits, datatype.BigEndian), e, nil
}

func typeOfRawPayload(x *syntax.RawPayload) (Part, TypeOfExpr, *syntax.Error) {
	h, f, l, err := selector.RawField(x)
	if err != nil {
		return Part{}, TypeOfExpr{}, err
	}
	if h == &selector.HeaderTH {
		return typeOfPayload(&syntax.Payload{Pos: x.Pos, FieldPos: x.Pos, Proto: h.Name, Field: f.Name})
	}
	e := TypeOfExpr{exprPayload, []typeOfAttr{{0, 0}, {1, 0}, {2, uint32(l)}, {3, x.Offset}, {4, x.Bits}}}
	return selectorPart(f.Type, f.Bits, datatype.BigEndian), e, nil
}

func typeOfKey(x syntax.Expr) (Part, TypeOfExpr, *syntax.Error) {
	key, err := selector.KeyOf(x)
	if err != nil {
		return Part{}, TypeOfExpr{}, err
	}
	e := TypeOfExpr{exprMeta, []typeOfAttr{{0, key.Key}}}
	switch x := x.(type) {
	case *syntax.CT:
		switch {
		case key.Type == nil && (x.Key == "saddr" || x.Key == "daddr"):
			return Part{}, TypeOfExpr{}, syntax.ErrorAt(x.KeyPos, "the type of ct %s depends on the packet: write ct %s ip %s or ct %s ip6 %s", x.Key, x.Dir, x.Key, x.Dir, x.Key)
		case key.Type == nil:
			return Part{}, TypeOfExpr{}, syntax.ErrorAt(x.KeyPos, "ct %s has no type that nft(8) could list: use \"type inet_service\"", x.Key)
		}
		dir := uint32(selector.ParseDirection(x.Dir)) - 1 // without a direction, the greatest number
		e.expr, e.attrs = exprCT, append(e.attrs, typeOfAttr{1, dir})
	case *syntax.Rt:
		e.expr = exprRt
	case *syntax.Socket:
		e.expr = exprSocket
	case *syntax.IPsec:
		e.expr, e.attrs = exprXfrm, append(e.attrs, typeOfAttr{1, x.Spnum}, typeOfAttr{2, uint32(selector.XfrmDirection(x.Dir))})
	}
	return keyPart(key), e, nil
}

func keyPart(k *selector.Key) Part { return selectorPart(k.Type, k.Bits, k.Order) }

func typeOfFIB(x *syntax.FIB) (Part, TypeOfExpr, *syntax.Error) {
	result := uint32(slices.Index(expr.FibResults, x.Result))
	p, _ := FIBPart(result) // the parser knows no other results
	return p, TypeOfExpr{exprFIB, []typeOfAttr{{0, result}, {1, expr.Flags(x.Inputs, expr.FibInputs)}}}, nil
}

// MaxGenre is the size of an operating system's name with its NUL (NFT_OSF_MAXGENRELEN).
const MaxGenre = 16

// OsfPart is the type of both keys of osf.
var OsfPart = selectorPart(datatype.String, 8*MaxGenre, datatype.HostEndian)

// NumgenPart is a number generator's type.
var NumgenPart = selectorPart(datatype.Integer, 32, datatype.HostEndian)

// FIBPart returns the type of a fib result, an index of expr.FibResults.
func FIBPart(result uint32) (Part, bool) {
	if result == 0 || result >= uint32(len(fibParts)) {
		return Part{}, false
	}
	return fibParts[result], true
}

var fibParts = [...]Part{
	1: selectorPart(datatype.IfIndex, 32, datatype.HostEndian),
	2: selectorPart(datatype.String, 8*datatype.IfNameSize, datatype.HostEndian),
	3: selectorPart(datatype.FIBAddrType, 32, datatype.HostEndian),
}
