package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
)

// typeOfParts returns the types of the typeof expressions in a set's
// userdata, nil where there are none or one of them is not known here.
func typeOfParts(userData []byte, record byte) []part {
	nested, ok := findRecord(userData, record)
	if !ok {
		return nil
	}
	expr, data, ok := parseTypeOfExpr(nested)
	if !ok {
		return nil
	}
	if expr != exprConcat {
		if p, ok := parseTypeOfPart(expr, data); ok {
			return []part{p}
		}
		return nil
	}
	var parts []part
	err := eachRecord(data, func(_ byte, value []byte) error {
		expr, data, ok := parseTypeOfExpr(value)
		if !ok {
			return errUserData
		}
		p, ok := parseTypeOfPart(expr, data)
		if !ok {
			return errUserData
		}
		parts = append(parts, p)
		return nil
	})
	if err != nil {
		return nil
	}
	return parts
}

// parseTypeOfExpr splits a typeof expression into its number and attributes.
func parseTypeOfExpr(b []byte) (expr uint32, data []byte, ok bool) {
	number, ok := findRecord(b, udataTypeOfExpr)
	if !ok {
		return 0, nil, false
	}
	if expr, ok = parseUint32(number); !ok {
		return 0, nil, false
	}
	data, ok = findRecord(b, udataTypeOfData)
	return expr, data, ok
}

// parseTypeOfPart is the inverse of typeOfSelector.
func parseTypeOfPart(expr uint32, data []byte) (part, bool) {
	attr := func(typ byte) uint32 {
		value, _ := findRecord(data, typ)
		n, _ := parseUint32(value)
		return n
	}
	switch expr {
	case exprPayload:
		if attr(0) == 0 {
			// Raw payload; the fourth attribute is its width.
			return selectorPart(datatype.Integer, attr(4), datatype.BigEndian), attr(4) > 0
		}
		for _, d := range payloadDescs {
			h, n := headerByName(d.proto), int(attr(1))
			if d.id != attr(0) || h == nil || n < 1 || n > len(d.fields) {
				continue
			}
			if f := h.field(d.fields[n-1]); f != nil {
				return selectorPart(f.typ, f.bits, datatype.BigEndian), true
			}
		}
	case exprExthdr:
		return parseTypeOfExthdr(attr)
	case exprMeta:
		for _, k := range metaSelectors {
			if uint32(k.key) == attr(0) {
				return selectorPart(k.typ, k.bits, k.order), true
			}
		}
	case exprCT:
		for _, k := range ctSelectors {
			if k.key == attr(0) && k.typ != nil {
				return selectorPart(k.typ, k.bits, k.order), true
			}
		}
	case exprFIB:
		return fibPart(attr(0))
	case exprNumgen, exprHash:
		return numgenPart, true
	case exprRt, exprSocket, exprOSF, exprXfrm:
		return parseTypeOfHost(expr, attr(0))
	}
	return part{}, false
}

// findRecord returns the value of the first record of a type.
func findRecord(b []byte, typ byte) (value []byte, ok bool) {
	err := eachRecord(b, func(t byte, v []byte) error {
		if t == typ && !ok {
			value, ok = v, true
		}
		return nil
	})
	return value, ok && err == nil
}
