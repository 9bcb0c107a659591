package set

import (
	"errors"
	"fmt"

	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/userdata"
)

// Complete fills in a dumped Set from Flags, Key, Data, Object and UserData. Undetermined fields
// stay empty.
func (s *Set) Complete() {
	s.Map = s.Flags&(FlagMap|FlagObject) != 0
	s.Verdict = s.Map && s.Data.ID == VerdictType
	s.AutoMerge = findUint32(s.UserData, udataSetMerge) != 0
	s.DataInterval = findUint32(s.UserData, udataSetDataInterval) != 0
	if value, ok := userdata.FindRecord(s.UserData, udataSetComment); ok {
		text, _ := userdata.ParseString(value)
		s.Comment = nft.ParseComment(text)
	}
	s.Key.Names = typeNames(s.Key.ID)
	s.Key.complete(int(s.Key.Len), typeOfParts(s.UserData, udataSetKeyTypeOf), findUint32(s.UserData, udataSetKeyOrder))
	switch {
	case s.Verdict:
		s.Data = Type{ID: VerdictType, Names: []string{datatype.Verdict.Name}}
	case s.Object != "":
		s.Data = Type{}
	case s.Map:
		n := int(s.Data.Len)
		if s.DataInterval {
			n /= 2
		}
		s.Data.Names = typeNames(s.Data.ID)
		s.Data.complete(n, typeOfParts(s.UserData, udataSetDataTypeOf), findUint32(s.UserData, udataSetDataOrder))
	}
}

// complete sets the parts from a length, typeof expressions and a stored byte order, which counts
// only for a single integer.
func (t *Type) complete(n int, exprs []Part, order uint32) {
	if t.parts == nil {
		t.parts, _ = t.partsOf(n, exprs)
	}
	if len(t.parts) > 1 && t.Fields == nil {
		for _, p := range t.parts {
			t.Fields = append(t.Fields, uint32(p.Size))
		}
	}
	if len(t.parts) == 1 && t.parts[0].Type == datatype.Integer && order != 0 {
		t.parts[0].Order = datatype.Order(order)
	}
}

// typeNames reads six bits per part; nil if a datatype is not known.
func typeNames(id uint32) []string {
	var names []string
	for ; id != 0; id >>= 6 {
		t, ok := datatype.ByID(id & 0x3f)
		if !ok {
			return nil
		}
		names = append([]string{t.Name}, names...)
	}
	return names
}

// Resolve returns the parts; a part of unknown width is an error.
func (t *Type) Resolve() ([]Part, error) {
	if t.parts != nil {
		return t.parts, nil
	}
	return t.partsOf(int(t.Len), nil)
}

// partsOf takes widths from the datatypes and typeof expressions, or else from the fields.
func (t *Type) partsOf(n int, exprs []Part) ([]Part, error) {
	if len(t.Names) == 0 {
		return nil, errors.New("no datatype given")
	}
	parts := make([]Part, 0, len(t.Names))
	for i, name := range t.Names {
		typ, ok := t.partType(i)
		if !ok {
			return nil, fmt.Errorf("unknown datatype %q", name)
		}
		p := partOf(typ)
		if i < len(exprs) && len(exprs) == len(t.Names) && exprs[i].Type.ID == typ.ID {
			p = exprs[i]
		}
		switch {
		case p.Size != 0:
		case i < len(t.Fields):
			p.Size = int(t.Fields[i])
		case len(t.Names) == 1:
			p.Size = n
		default:
			return nil, fmt.Errorf("the width of part %d, %s, is not known", i+1, name)
		}
		if p.Bits == 0 {
			p.Bits = 8 * p.Size
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// partType prefers the number: some names belong to two types or to a type that cannot be declared.
func (t *Type) partType(i int) (*datatype.Type, bool) {
	if t.ID != 0 {
		if typ, ok := datatype.ByID(t.ID >> (6 * (len(t.Names) - 1 - i)) & 0x3f); ok {
			return typ, true
		}
	}
	return datatype.Lookup(t.Names[i])
}
