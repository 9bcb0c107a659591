package compile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// extension is an extension of a packet header: an IPv6 extension header, an
// option of IPv4 or TCP, a chunk of SCTP.
type extension struct {
	name string
	// typ is its number in the packet.
	typ uint8
	// desc is how nft numbers it in a typeof declaration: 0 where that is typ.
	desc uint32
	// presence is the field that nft loads to ask for the extension itself; it
	// has no word where it is none of fields.
	presence extensionField
	fields   []extensionField
}

// extensionField is a field of an extension. Offset and width are in bits.
type extensionField struct {
	name string
	// index is how nft numbers the field in a typeof declaration.
	index        uint32
	typ          *datatype.Type
	offset, bits uint32
}

// field returns the field of a name, or nil.
func (e *extension) field(name string) *extensionField {
	for i := range e.fields {
		if e.fields[i].name == name {
			return &e.fields[i]
		}
	}
	return nil
}

// fieldAt returns the field at a place, as nft finds it for raw options; nil
// where there is none.
func (e *extension) fieldAt(offset, bits uint32) *extensionField {
	if e.presence.offset == offset && e.presence.bits == bits {
		return &e.presence
	}
	for i := range e.fields {
		if f := &e.fields[i]; f.offset == offset && f.bits == bits {
			return f
		}
	}
	return nil
}

// extensionsOf returns the extensions of a kind and how the kernel names their
// place.
func extensionsOf(kind syntax.ExthdrKind) ([]extension, ExthdrOp) {
	switch kind {
	case syntax.ExthdrIPv4:
		return ipv4Options[:], ExthdrIPv4
	case syntax.ExthdrTCP:
		return tcpOptions[:], ExthdrTCP
	case syntax.ExthdrSCTP:
		return sctpChunks[:], ExthdrSCTP
	default:
		return ipv6Extensions[:], ExthdrIPv6
	}
}

// resolved is what an expression on an extension refers to.
type resolved struct {
	ext *extension
	op  ExthdrOp
	// field is nil for raw options at a place that is no field.
	field        *extensionField
	typ          *datatype.Type
	offset, bits uint32
	present      bool
}

// resolveExthdr finds the extension and field of an expression.
func resolveExthdr(x *syntax.Exthdr) (resolved, *Error) {
	list, op := extensionsOf(x.Kind)
	r := resolved{op: op}
	var err *Error
	if r.ext, err = findExtension(x, list); err != nil {
		return resolved{}, err
	}
	switch {
	case x.Raw:
		return resolveRaw(x, r)
	case x.Field == "":
		r.field, r.present = &r.ext.presence, true
	default:
		if r.field = r.ext.field(fieldName(x)); r.field == nil || isNumber(x.Name) && x.Field != "length" {
			return resolved{}, unknownExtensionField(x, r.ext)
		}
	}
	r.typ, r.offset, r.bits = r.field.typ, r.field.offset, r.field.bits
	return r, nil
}

// fieldName is the field's name with the number in its brackets.
func fieldName(x *syntax.Exthdr) string {
	switch {
	case x.Index != 0:
		return x.Field + "[" + strconv.FormatUint(uint64(x.Index), 10) + "]"
	case x.Name == "rt0" && x.Field == "addr", x.Name == "srh" && x.Field == "sid":
		return x.Field + "[0]" // which is none: they count from 1
	default:
		return x.Field
	}
}

// isNumber reports whether a name is the number of a TCP option.
func isNumber(name string) bool { return name != "" && '0' <= name[0] && name[0] <= '9' }

// findExtension returns the extension that an expression names.
func findExtension(x *syntax.Exthdr, list []extension) (*extension, *Error) {
	if isNumber(x.Name) && x.Kind == syntax.ExthdrTCP {
		n, err := syntax.ParseNumber(x.Name, 8)
		if err != nil {
			return nil, errorAt(x.NamePos, "option %s: want a number from 0 to 255", x.Name)
		}
		for i := range list {
			if list[i].typ == uint8(n) {
				return &list[i], nil
			}
		}
		return &extension{name: x.Name, typ: uint8(n), presence: tcpKind}, nil
	}
	for i := range list {
		// "exthdr" goes by the protocol number, which rt0, rt2 and srh share
		// with rt.
		if list[i].name == x.Name && (x.Field != "" || x.Kind != syntax.ExthdrIPv6 || list[i].presence.bits != 0) {
			return &list[i], nil
		}
	}
	names := make([]string, 0, len(list))
	for i := range list {
		if x.Kind != syntax.ExthdrIPv6 || x.Field != "" || list[i].presence.bits != 0 {
			names = append(names, list[i].name)
		}
	}
	what := x.Kind.String()
	if x.Kind == syntax.ExthdrIPv6 {
		what = "extension header"
	}
	return nil, errorAt(x.NamePos, "unknown %s %q: want %s", what, x.Name, strings.Join(names, ", "))
}

// unknownExtensionField says which fields an extension has.
func unknownExtensionField(x *syntax.Exthdr, e *extension) *Error {
	what := x.Name
	if x.Kind != syntax.ExthdrIPv6 {
		what = x.Kind.String() + " " + x.Name
	}
	var names []string
	for i := range e.fields {
		if name := e.fields[i].name; !isNumber(x.Name) || name == "length" {
			names = append(names, name)
		}
	}
	if x.Kind != syntax.ExthdrIPv6 {
		names = append(names, "exists or missing")
	}
	if len(names) == 0 {
		return errorAt(x.FieldPos, "%s has no field that nft(8) 1.0.6 knows", what)
	}
	return errorAt(x.FieldPos, "unknown field %q of %s: want %s", fieldName(x), what, strings.Join(names, ", "))
}

// maxTCPOptions is the room for options in a TCP header, in bits.
const maxTCPOptions = 40 * 8

// resolveRaw checks the place of "tcp option @KIND,OFFSET,LENGTH".
func resolveRaw(x *syntax.Exthdr, r resolved) (resolved, *Error) {
	r.typ, r.offset, r.bits = datatype.Integer, x.Offset, x.Length
	r.field = r.ext.fieldAt(x.Offset, x.Length)
	switch {
	case x.Length == 0:
		return resolved{}, errorAt(x.Pos, "tcp option: the length is 0: want 1 to 128 bits")
	case x.Length > 128 || x.Length+x.Offset%8 > 128:
		return resolved{}, errorAt(x.Pos, "tcp option: %d bits from bit %d on do not fit in a register of 128 bits", x.Length, x.Offset%8)
	case x.Offset > maxTCPOptions:
		return resolved{}, errorAt(x.Pos, "tcp option: offset %d is behind the longest TCP header: want 0 to %d bits", x.Offset, maxTCPOptions)
	}
	return r, nil
}

// typeOfExthdr returns the type of an expression on an extension, and how nft
// stores it. Of the options that nft knows it can read raw ones back only
// where they are one of the fields: it aborts on others.
func typeOfExthdr(x *syntax.Exthdr) (part, typeOfExpr, *Error) {
	r, err := resolveExthdr(x)
	switch {
	case err != nil:
		return part{}, typeOfExpr{}, err
	case r.field == nil:
		return part{}, typeOfExpr{}, errorAt(x.Pos, "nft(8) 1.0.6 cannot list the type of a raw tcp option: use \"type\"")
	}
	e := typeOfExpr{exprExthdr, []typeOfAttr{{udataExthdrField, r.field.index}}}
	if x.Kind == syntax.ExthdrIPv6 {
		e.attrs = append(e.attrs, typeOfAttr{udataExthdrDesc, r.ext.desc})
	} else {
		e.attrs = append(e.attrs, typeOfAttr{udataExthdrOp, uint32(r.op)}, typeOfAttr{udataExthdrDesc, uint32(r.ext.typ)})
	}
	return selectorPart(r.typ, r.bits, datatype.BigEndian), e, nil
}

// Attributes that nft stores of an expression on an extension, and the number
// of the expression (enum expr_types).
const (
	exprExthdr = 8

	udataExthdrDesc  = 0
	udataExthdrField = 1
	udataExthdrOp    = 2
)

// parseTypeOfExthdr is the inverse of typeOfExthdr.
func parseTypeOfExthdr(attr func(byte) uint32) (part, bool) {
	op := ExthdrOp(attr(udataExthdrOp))
	kinds := [...]syntax.ExthdrKind{syntax.ExthdrIPv6, syntax.ExthdrTCP, syntax.ExthdrIPv4, syntax.ExthdrSCTP}
	if int(op) >= len(kinds) {
		return part{}, false
	}
	list, _ := extensionsOf(kinds[op])
	desc, index := attr(udataExthdrDesc), attr(udataExthdrField)
	for i := range list {
		e := &list[i]
		if op == ExthdrIPv6 && e.desc != desc || op != ExthdrIPv6 && uint32(e.typ) != desc {
			continue
		}
		if e.presence.bits != 0 && e.presence.index == index {
			return selectorPart(e.presence.typ, e.presence.bits, datatype.BigEndian), true
		}
		if f := slices.IndexFunc(e.fields, func(f extensionField) bool { return f.index == index }); f >= 0 {
			return selectorPart(e.fields[f].typ, e.fields[f].bits, datatype.BigEndian), true
		}
	}
	if op == ExthdrTCP && index == tcpKind.index {
		return selectorPart(tcpKind.typ, tcpKind.bits, datatype.BigEndian), true
	}
	return part{}, false
}
