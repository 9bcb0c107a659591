package compile

import (
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// term is an evaluated expression.
type term interface {
	info() *termInfo
}

type termInfo struct {
	pos syntax.Pos
	// nil for concatenations
	typ *datatype.Type
	// bits: width in a register; width: of constants compared with it. They differ for fields that
	// end within a byte.
	bits, width uint32
	order       datatype.Order
}

func (t *termInfo) info() *termInfo { return t }

func (t *termInfo) bytes() uint32 { return (t.bits + 7) / 8 }

// slots returns the size in 32-bit registers.
func (t *termInfo) slots() uint32 { return (t.bits + 31) / 32 }

func (t *termInfo) isString() bool { return t.typ == datatype.IfName || t.typ == datatype.String }

type constTerm struct {
	termInfo
	v value
}

// length in bits
type prefixTerm struct {
	termInfo
	v   value
	len uint32
}

// inclusive
type rangeTerm struct {
	termInfo
	from, to value
}

type payloadTerm struct {
	termInfo
	header *selector.Header
	field  *selector.Field
	layer  selector.Layer
	// in bits
	offset uint32
}

// keyTerm is a key of meta or, with ct, of a connection.
type keyTerm struct {
	termInfo
	key *selector.Key
	ct  bool
	dir selector.Direction
}

func keyInfo(pos syntax.Pos, k *selector.Key) termInfo {
	return termInfo{pos: pos, typ: k.Type, bits: k.Bits, width: k.Bits, order: k.Order}
}

type fibTerm struct {
	termInfo
	inputs []string
	result string
	// only whether there is a result
	present bool
}

// The right side is constant.
type binaryTerm struct {
	termInfo
	op string
	x  term
	y  value
}

type swapTerm struct {
	termInfo
	x term
}

type concatTerm struct {
	termInfo
	parts []term
}

type setTerm struct {
	termInfo
	set *set.Set
	// 0 for named sets
	id uint32
	// single values of an anonymous interval set, in text order
	values []value
}

type lookupTerm struct {
	termInfo
	key   term
	table *setTerm
}

func partsOf(t term) []term {
	if c, ok := t.(*concatTerm); ok {
		return c.parts
	}
	return []term{t}
}

func isConstant(t term) bool {
	switch t := t.(type) {
	case *constTerm, *prefixTerm, *rangeTerm:
		return true
	case *concatTerm:
		return !slices.ContainsFunc(t.parts, func(p term) bool { return !isConstant(p) })
	default:
		return false
	}
}

func isSingle(t term) bool {
	switch t := t.(type) {
	case *constTerm:
		return true
	case *concatTerm:
		return !slices.ContainsFunc(t.parts, func(p term) bool { return !isSingle(p) })
	default:
		return false
	}
}

func typeName(t term) string {
	var names []string
	for _, p := range partsOf(t) {
		name := "a concatenation"
		if typ := p.info().typ; typ != nil {
			name = typ.Name
		}
		names = append(names, name)
	}
	return strings.Join(names, " . ")
}
