package compile

import (
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// host evaluates a selector that asks the host about a packet.
func (r *ruleCompiler) host(x syntax.Expr) (term, error) {
	switch x := x.(type) {
	case *syntax.Rt:
		return r.rt(x)
	case *syntax.Socket:
		return r.socket(x)
	case *syntax.OSF:
		return r.osf(x)
	case *syntax.IPsec:
		return r.ipsec(x)
	case *syntax.Hash:
		return r.hash(x)
	default:
		return nil, errorAt(x.Position(), "%s is no selector", describe(x))
	}
}

// routed refuses the families whose packets the kernel knows no route or
// socket of.
func (r *ruleCompiler) routed(what string, pos syntax.Pos) error {
	switch r.ctx.family {
	case nft.FamilyIP, nft.FamilyIP6, nft.FamilyInet:
		return nil
	default:
		return errorAt(pos, "%s is possible in the families ip, ip6 and inet only", what)
	}
}

// typeOfHost is typeOfSelector for the selectors that ask the host.
func typeOfHost(x syntax.Expr) (part, typeOfExpr, *Error) {
	switch x := x.(type) {
	case *syntax.Rt:
		key, err := rtByName(x)
		if err != nil {
			return part{}, typeOfExpr{}, err
		}
		return key.part(), typeOfExpr{exprRt, []typeOfAttr{{0, key.key}}}, nil
	case *syntax.Socket:
		key := socketByName(x.Key)
		if key == nil {
			return part{}, typeOfExpr{}, errorAt(x.KeyPos, "unknown key %q of socket", x.Key)
		}
		return key.part(), typeOfExpr{exprSocket, []typeOfAttr{{0, key.key}}}, nil
	case *syntax.OSF:
		return osfPart, typeOfExpr{expr: exprOSF}, nil
	case *syntax.IPsec:
		key := ipsecByName(x.L3, x.Key)
		if key == nil {
			return part{}, typeOfExpr{}, errorAt(x.Pos, "unknown key %q of ipsec", x.Key)
		}
		return key.part(), typeOfExpr{exprXfrm, []typeOfAttr{{0, key.key}, {1, x.Spnum}, {2, uint32(xfrmDirection(x.Dir))}}}, nil
	case *syntax.Hash:
		kind, seed, seeded := hashKind(x), uint32(0), uint32(0)
		if x.Seed != nil {
			seed, seeded = *x.Seed, 1
		}
		return numgenPart, typeOfExpr{exprHash, []typeOfAttr{{0, kind}, {1, x.Offset}, {2, x.Mod}, {3, seed}, {4, seeded}}}, nil
	default:
		return part{}, typeOfExpr{}, errorAt(x.Position(), "this is no selector")
	}
}

// parseTypeOfHost is the inverse of typeOfHost, by the number of the
// expression and of its key.
func parseTypeOfHost(expr, key uint32) (part, bool) {
	var keys []hostKey
	switch expr {
	case exprOSF:
		return osfPart, true
	case exprRt:
		keys = rtSelectors[:]
	case exprSocket:
		keys = socketSelectors[:]
	case exprXfrm:
		keys = ipsecSelectors[:]
	}
	for i := range keys {
		if keys[i].key == key {
			return keys[i].part(), true
		}
	}
	return part{}, false
}

// hostKey is a key of an rt, socket or xfrm expression.
type hostKey struct {
	name string
	// l3 is ip or ip6 for the keys that are addresses of one of them.
	l3  string
	key uint32
	// dump is libnftnl's name.
	dump  string
	typ   *datatype.Type
	bits  uint32
	order datatype.Order
	// flag is true for numbers that are 0 or 1.
	flag bool
}

// info is the termInfo of a term with the key.
func (k *hostKey) info(pos syntax.Pos) termInfo {
	return termInfo{pos: pos, typ: k.typ, bits: k.bits, width: k.bits, order: k.order}
}

// part is the part of a set's key that the key's values are.
func (k *hostKey) part() part { return selectorPart(k.typ, k.bits, k.order) }

// hostDumpName returns libnftnl's name of a kernel key.
func hostDumpName(keys []hostKey, key uint32) string {
	for i := range keys {
		if keys[i].key == key {
			return keys[i].dump
		}
	}
	return "unknown"
}
