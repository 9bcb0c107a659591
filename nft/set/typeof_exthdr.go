package set

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// nft can read a raw option of a known kind back only if it equals a field, and aborts otherwise.
func typeOfExthdr(x *syntax.Exthdr) (Part, TypeOfExpr, *syntax.Error) {
	r, err := selector.ResolveExthdr(x)
	switch {
	case err != nil:
		return Part{}, TypeOfExpr{}, err
	case r.Field == nil:
		return Part{}, TypeOfExpr{}, syntax.ErrorAt(x.Pos, "nft(8) 1.0.6 cannot list the type of a raw tcp option: use \"type\"")
	}
	e := TypeOfExpr{exprExthdr, []typeOfAttr{{udataExthdrField, r.Field.Index}}}
	if x.Kind == syntax.ExthdrIPv6 {
		e.attrs = append(e.attrs, typeOfAttr{udataExthdrDesc, r.Ext.Desc})
	} else {
		e.attrs = append(e.attrs, typeOfAttr{udataExthdrOp, uint32(r.Op)}, typeOfAttr{udataExthdrDesc, uint32(r.Ext.Type)})
	}
	return selectorPart(r.Type, r.Bits, datatype.BigEndian), e, nil
}

// nft's attributes and number of the expression (enum expr_types).
const (
	exprExthdr = 8

	udataExthdrDesc  = 0
	udataExthdrField = 1
	udataExthdrOp    = 2
)

func parseTypeOfExthdr(attr func(byte) uint32) (Part, bool) {
	op := selector.ExthdrOp(attr(udataExthdrOp))
	kinds := [...]syntax.ExthdrKind{syntax.ExthdrIPv6, syntax.ExthdrTCP, syntax.ExthdrIPv4, syntax.ExthdrSCTP}
	if int(op) >= len(kinds) {
		return Part{}, false
	}
	list, _ := selector.ExtensionsOf(kinds[op])
	desc, index := attr(udataExthdrDesc), attr(udataExthdrField)
	for i := range list {
		e := &list[i]
		if op == selector.ExthdrIPv6 && e.Desc != desc || op != selector.ExthdrIPv6 && uint32(e.Type) != desc {
			continue
		}
		for _, f := range append([]selector.ExtensionField{e.Presence}, e.Fields...) {
			if f.Bits != 0 && f.Index == index {
				return selectorPart(f.Type, f.Bits, datatype.BigEndian), true
			}
		}
	}
	if op == selector.ExthdrTCP && index == selector.TCPKind.Index {
		return selectorPart(selector.TCPKind.Type, selector.TCPKind.Bits, datatype.BigEndian), true
	}
	return Part{}, false
}
