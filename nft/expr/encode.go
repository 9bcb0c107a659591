package expr

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// maxExprs is the kernel's limit of expressions in a rule (NFT_RULE_MAXEXPRS).
const maxExprs = 128

// Encoded is a rule's marshalled expressions, with the places of the numbers
// of anonymous sets.
type Encoded struct {
	Bytes []byte
	// ids are the offsets of set numbers, which are stored counted from 1.
	ids []uint32
}

// At returns the expressions with the set numbers counted from base.
func (e *Encoded) At(base uint32) []byte {
	b := append([]byte(nil), e.Bytes...)
	for _, at := range e.ids {
		id := binary.BigEndian.Uint32(b[at:])
		binary.BigEndian.PutUint32(b[at:], base+id)
	}
	return b
}

// EncodeList marshals the expressions of a rule.
func EncodeList(family uint8, list []Expr) (*Encoded, error) {
	if len(list) > maxExprs {
		return nil, fmt.Errorf("rule has %d expressions: the kernel takes at most %d; split it", len(list), maxExprs)
	}
	b := make([]byte, 0, 72*len(list))
	var ids []uint32
	for _, e := range list {
		var at int
		b, at = OpenAttr(b, Nested|unix.NFTA_LIST_ELEM)
		var err error
		if b, err = Append(b, e, family); err != nil {
			return nil, err
		}
		if len(b)-at > 1<<16-1 {
			return nil, fmt.Errorf("expression %s is too long", e)
		}
		b = CloseAttr(b, at)
		if id := e.setID(); id != nil && *id != 0 {
			off, ok := findSetID(b[at+4:], *id)
			if !ok {
				return nil, fmt.Errorf("expression %s: its set number was not marshalled", e)
			}
			ids = append(ids, uint32(at+4)+off)
		}
	}
	return &Encoded{b, ids}, nil
}

// Append appends an expression's name and attributes.
func Append(b []byte, e Expr, family uint8) ([]byte, error) {
	if k, ok := e.(Library); ok {
		if b, ok := AppendLibrary(b, k.Any); ok {
			return b, nil
		}
	}
	data, err := e.Marshal(family)
	return append(b, data...), err
}

// Netlink attributes (linux/netlink.h).
const Nested = 0x8000

// AppendAttr appends a netlink attribute, padded to four bytes.
func AppendAttr(b []byte, typ uint16, data []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(4+len(data)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, data...)
	return append(b, Zeros[:-len(data)&3]...)
}

// findSetID returns the offset of NFTA_LOOKUP_SET_ID, NFTA_DYNSET_SET_ID or
// NFTA_OBJREF_SET_ID in a marshalled expression.
func findSetID(b []byte, id uint32) (uint32, bool) {
	name, at := "", 0
	for at+4 <= len(b) {
		n := int(binary.NativeEndian.Uint16(b[at:]))
		typ := binary.NativeEndian.Uint16(b[at+2:]) &^ Nested
		if n < 4 || at+n > len(b) {
			return 0, false
		}
		switch {
		case typ == 1: // NFTA_EXPR_NAME
			name = string(b[at+4 : at+n-1])
		case typ == 2 && name == "lookup": // NFTA_EXPR_DATA
			return findAttr(b, at+4, at+n, 4, id)
		case typ == 2 && name == "dynset":
			return findAttr(b, at+4, at+n, 2, id)
		case typ == 2 && name == "objref":
			return findAttr(b, at+4, at+n, 5, id)
		}
		at += (n + 3) &^ 3
	}
	return 0, false
}

// findAttr returns the offset of a 32-bit attribute's value in b[at:end].
func findAttr(b []byte, at, end int, typ uint16, value uint32) (uint32, bool) {
	for at+4 <= end {
		n := int(binary.NativeEndian.Uint16(b[at:]))
		if n < 4 || at+n > end {
			return 0, false
		}
		if n == 8 && binary.NativeEndian.Uint16(b[at+2:]) == typ && binary.BigEndian.Uint32(b[at+4:]) == value {
			return uint32(at + 4), true
		}
		at += (n + 3) &^ 3
	}
	return 0, false
}
