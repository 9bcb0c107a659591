package set

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/userdata"
)

// typeOfParts returns nil without typeof expressions or if one is not known.
func typeOfParts(userData []byte, record byte) []Part {
	nested, _ := userdata.FindRecord(userData, record)
	expr, data, ok := parseTypeOfExpr(nested)
	if !ok {
		return nil
	}
	if expr != exprConcat {
		if p, ok := parseTypeOfPart(expr, data); ok {
			return []Part{p}
		}
		return nil
	}
	var parts []Part
	err := userdata.EachRecord(data, func(_ byte, value []byte) error {
		expr, data, ok := parseTypeOfExpr(value)
		p, known := parseTypeOfPart(expr, data)
		if !ok || !known {
			return userdata.ErrMalformed
		}
		parts = append(parts, p)
		return nil
	})
	if err != nil {
		return nil
	}
	return parts
}

func parseTypeOfExpr(b []byte) (expr uint32, data []byte, ok bool) {
	number, _ := userdata.FindRecord(b, udataTypeOfExpr)
	expr, ok = userdata.ParseUint32(number)
	data, found := userdata.FindRecord(b, udataTypeOfData)
	return expr, data, ok && found
}

func findUint32(b []byte, record byte) uint32 {
	value, _ := userdata.FindRecord(b, record)
	n, _ := userdata.ParseUint32(value)
	return n
}

func parseTypeOfPart(expr uint32, data []byte) (Part, bool) {
	attr := func(typ byte) uint32 { return findUint32(data, typ) }
	switch expr {
	case exprPayload:
		if attr(0) == 0 {
			// raw payload; the fourth attribute is its width
			return selectorPart(datatype.Integer, attr(4), datatype.BigEndian), attr(4) > 0
		}
		for _, h := range selector.Headers {
			if n := int(attr(1)); h.Desc == attr(0) && n >= 1 && n <= len(h.Fields) {
				return selectorPart(h.Fields[n-1].Type, h.Fields[n-1].Bits, datatype.BigEndian), true
			}
		}
	case exprExthdr:
		return parseTypeOfExthdr(attr)
	case exprFIB:
		return FIBPart(attr(0))
	case exprNumgen, exprHash:
		return NumgenPart, true
	case exprOSF:
		return OsfPart, true
	}
	keys := map[uint32]selector.Keys{
		exprMeta: selector.MetaKeys, exprCT: selector.CTKeys, exprRt: selector.RtKeys, exprSocket: selector.SocketKeys, exprXfrm: selector.IPsecKeys,
	}
	if k := keys[expr].ByNumber(attr(0)); k != nil && k.Type != nil {
		return keyPart(k), true
	}
	return Part{}, false
}
