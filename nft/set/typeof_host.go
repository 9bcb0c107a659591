package set

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// hashKind returns the kernel's number of a hash (enum nft_hash_types).
func hashKind(x *syntax.Hash) uint32 {
	if x.X == nil {
		return unix.NFT_HASH_SYM
	}
	return unix.NFT_HASH_JENKINS
}

// typeOfHost is typeOfSelector for the selectors that ask the host.
func typeOfHost(x syntax.Expr) (Part, TypeOfExpr, *syntax.Error) {
	switch x := x.(type) {
	case *syntax.Rt:
		key, err := selector.RtByName(x)
		if err != nil {
			return Part{}, TypeOfExpr{}, err
		}
		return keyPart(key), TypeOfExpr{exprRt, []typeOfAttr{{0, key.Key}}}, nil
	case *syntax.Socket:
		key := selector.SocketKeys.ByName("", x.Key)
		if key == nil {
			return Part{}, TypeOfExpr{}, syntax.ErrorAt(x.KeyPos, "unknown key %q of socket", x.Key)
		}
		return keyPart(key), TypeOfExpr{exprSocket, []typeOfAttr{{0, key.Key}}}, nil
	case *syntax.OSF:
		return OsfPart, TypeOfExpr{expr: exprOSF}, nil
	case *syntax.IPsec:
		key := selector.IPsecKeys.ByName(x.L3, x.Key)
		if key == nil {
			return Part{}, TypeOfExpr{}, syntax.ErrorAt(x.Pos, "unknown key %q of ipsec", x.Key)
		}
		return keyPart(key), TypeOfExpr{exprXfrm, []typeOfAttr{{0, key.Key}, {1, x.Spnum}, {2, uint32(selector.XfrmDirection(x.Dir))}}}, nil
	case *syntax.Hash:
		kind, seed, seeded := hashKind(x), uint32(0), uint32(0)
		if x.Seed != nil {
			seed, seeded = *x.Seed, 1
		}
		return NumgenPart, TypeOfExpr{exprHash, []typeOfAttr{{0, kind}, {1, x.Offset}, {2, x.Mod}, {3, seed}, {4, seeded}}}, nil
	default:
		return Part{}, TypeOfExpr{}, syntax.ErrorAt(x.Position(), "this is not a selector")
	}
}

// keyPart is the part of a set's key that the key's values are.
func keyPart(k *selector.Key) Part { return selectorPart(k.Type, k.Bits, k.Order) }

// MaxGenre is the length of an operating system's name with its NUL
// (NFT_OSF_MAXGENRELEN).
const MaxGenre = 16

// OsfPart is the type of both keys of osf.
var OsfPart = selectorPart(datatype.String, 8*MaxGenre, datatype.HostEndian)
