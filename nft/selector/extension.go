package selector

import (
	"strconv"
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

type extension struct {
	Name string
	Type uint8
	// in a typeof declaration, 0 if it is Type
	Desc uint32
	// loaded to check for the extension; unnamed unless in Fields
	Presence ExtensionField
	Fields   []ExtensionField
}

// ExtensionField is a field of an extension, with offset and Bits in bits.
type ExtensionField struct {
	Name string
	// in a typeof declaration
	Index        uint32
	Type         *datatype.Type
	offset, Bits uint32
}

func (e *extension) field(name string) *ExtensionField {
	return find(e.Fields, func(f *ExtensionField) bool { return f.Name == name })
}

// fieldAt returns nil if the field is missing.
func (e *extension) fieldAt(offset, bits uint32) *ExtensionField {
	if e.Presence.offset == offset && e.Presence.Bits == bits {
		return &e.Presence
	}
	return find(e.Fields, func(f *ExtensionField) bool { return f.offset == offset && f.Bits == bits })
}

// ExtensionsOf returns the extensions of a kind, and the kernel's number.
func ExtensionsOf(kind syntax.ExthdrKind) ([]extension, ExthdrOp) {
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

type resolved struct {
	Ext *extension
	Op  ExthdrOp
	// nil for raw options outside fields
	Field        *ExtensionField
	Type         *datatype.Type
	Offset, Bits uint32
	Present      bool
}

// ResolveExthdr finds the extension and field.
func ResolveExthdr(x *syntax.Exthdr) (resolved, *syntax.Error) {
	list, op := ExtensionsOf(x.Kind)
	r := resolved{Op: op}
	var err *syntax.Error
	if r.Ext, err = findExtension(x, list); err != nil {
		return resolved{}, err
	}
	switch {
	case x.Raw:
		return resolveRaw(x, r)
	case x.Field == "":
		r.Field, r.Present = &r.Ext.Presence, true
	default:
		if r.Field = r.Ext.field(fieldName(x)); r.Field == nil || IsNumber(x.Name) && x.Field != "length" {
			return resolved{}, unknownExtensionField(x, r.Ext)
		}
	}
	r.Type, r.Offset, r.Bits = r.Field.Type, r.Field.offset, r.Field.Bits
	return r, nil
}

// ExthdrAt is the inverse of ResolveExthdr, which fails if the place has no name. The place is in
// bits; 0 bits is the extension itself.
func ExthdrAt(op ExthdrOp, typ uint8, offset, bits uint32) *syntax.Exthdr {
	kind := [...]syntax.ExthdrKind{ExthdrIPv6: syntax.ExthdrIPv6, ExthdrTCP: syntax.ExthdrTCP, ExthdrIPv4: syntax.ExthdrIPv4, ExthdrSCTP: syntax.ExthdrSCTP}[op&3]
	list, _ := ExtensionsOf(kind)
	x := &syntax.Exthdr{Kind: kind}
	for i := range list {
		e := &list[i]
		if e.Type != typ {
			continue
		}
		if x.Name == "" {
			x.Name = e.Name
		}
		f := find(e.Fields, func(f *ExtensionField) bool { return f.offset == offset && f.Bits == bits })
		if f == nil {
			continue
		}
		x.Name, x.Field = e.Name, f.Name
		if name, index, ok := strings.Cut(strings.TrimSuffix(f.Name, "]"), "["); ok {
			n, _ := datatype.ParseNumber(index, 32)
			x.Field, x.Index = name, uint32(n)
		}
		return x
	}
	if x.Name == "" {
		x.Name = strconv.Itoa(int(typ))
	}
	if kind == syntax.ExthdrTCP && bits > 0 {
		x.Raw, x.Name, x.Offset, x.Length = true, strconv.Itoa(int(typ)), offset, bits
	} else if bits > 0 {
		x.Name, x.Field = "", "unknown"
	}
	return x
}

func fieldName(x *syntax.Exthdr) string {
	switch {
	case x.Index != 0:
		return x.Field + "[" + strconv.FormatUint(uint64(x.Index), 10) + "]"
	case x.Name == "rt0" && x.Field == "addr", x.Name == "srh" && x.Field == "sid":
		return x.Field + "[0]" // they count from 1
	default:
		return x.Field
	}
}

// IsNumber reports whether name begins with a digit.
func IsNumber(name string) bool { return name != "" && '0' <= name[0] && name[0] <= '9' }

func findExtension(x *syntax.Exthdr, list []extension) (*extension, *syntax.Error) {
	if IsNumber(x.Name) && x.Kind == syntax.ExthdrTCP {
		n, ok := datatype.ParseNumber(x.Name, 8)
		if !ok {
			return nil, syntax.ErrorAt(x.NamePos, "option %s: want a number from 0 to 255", x.Name)
		}
		if e := find(list, func(e *extension) bool { return e.Type == uint8(n) }); e != nil {
			return e, nil
		}
		return &extension{Name: x.Name, Type: uint8(n), Presence: TCPKind}, nil
	}
	var names []string
	for i := range list {
		// the protocol number of "exthdr" is shared by rt, rt0, rt2 and srh
		if x.Kind == syntax.ExthdrIPv6 && x.Field == "" && list[i].Presence.Bits == 0 {
			continue
		}
		if list[i].Name == x.Name {
			return &list[i], nil
		}
		names = append(names, list[i].Name)
	}
	what := x.Kind.String()
	if x.Kind == syntax.ExthdrIPv6 {
		what = "extension header"
	}
	return nil, syntax.ErrorAt(x.NamePos, "unknown %s %q: want %s", what, x.Name, strings.Join(names, ", "))
}

func unknownExtensionField(x *syntax.Exthdr, e *extension) *syntax.Error {
	what := x.Name
	if x.Kind != syntax.ExthdrIPv6 {
		what = x.Kind.String() + " " + x.Name
	}
	var names []string
	for i := range e.Fields {
		if name := e.Fields[i].Name; !IsNumber(x.Name) || name == "length" {
			names = append(names, name)
		}
	}
	if x.Kind != syntax.ExthdrIPv6 {
		names = append(names, "exists or missing")
	}
	if len(names) == 0 {
		return syntax.ErrorAt(x.FieldPos, "%s has no field that nft(8) 1.0.6 knows", what)
	}
	return syntax.ErrorAt(x.FieldPos, "unknown field %q of %s: want %s", fieldName(x), what, strings.Join(names, ", "))
}

// in bits
const maxTCPOptions = 40 * 8

// resolveRaw resolves "tcp option @KIND,OFFSET,LENGTH".
func resolveRaw(x *syntax.Exthdr, r resolved) (resolved, *syntax.Error) {
	r.Type, r.Offset, r.Bits = datatype.Integer, x.Offset, x.Length
	r.Field = r.Ext.fieldAt(x.Offset, x.Length)
	switch {
	case x.Length == 0:
		return resolved{}, syntax.ErrorAt(x.Pos, "tcp option: the length is 0: want 1 to 128 bits")
	case x.Length > 128 || x.Length+x.Offset%8 > 128:
		return resolved{}, syntax.ErrorAt(x.Pos, "tcp option: %d bits from bit %d on do not fit in a register of 128 bits", x.Length, x.Offset%8)
	case x.Offset > maxTCPOptions:
		return resolved{}, syntax.ErrorAt(x.Pos, "tcp option: offset %d is behind the longest TCP header: want 0 to %d bits", x.Offset, maxTCPOptions)
	}
	return r, nil
}
