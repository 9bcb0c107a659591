package compile

import (
	"cmp"
	"encoding/binary"
	"math/big"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// value is an unsigned number of up to 128 bits, the most in one register.
type value struct{ hi, lo uint64 }

// valueMask has the low n bits set.
func valueMask(n uint32) value {
	switch {
	case n >= 128:
		return value{^uint64(0), ^uint64(0)}
	case n >= 64:
		return value{uint64(1)<<(n-64) - 1, ^uint64(0)}
	default:
		return value{0, uint64(1)<<n - 1}
	}
}

func prefixMask(width, n uint32) value { return valueMask(width).xor(valueMask(width - n)) }

func (v value) and(o value) value { return value{v.hi & o.hi, v.lo & o.lo} }

func (v value) or(o value) value { return value{v.hi | o.hi, v.lo | o.lo} }

func (v value) xor(o value) value { return value{v.hi ^ o.hi, v.lo ^ o.lo} }

func (v value) not() value { return value{^v.hi, ^v.lo} }

func (v value) shl(n uint32) value {
	if n >= 64 {
		return value{v.lo << (n - 64), 0}
	}
	return value{v.hi<<n | v.lo>>(64-n), v.lo << n}
}

func (v value) shr(n uint32) value {
	if n >= 64 {
		return value{0, v.hi >> (n - 64)}
	}
	return value{v.hi >> n, v.lo>>n | v.hi<<(64-n)}
}

func (v value) next() value {
	if v.lo++; v.lo == 0 {
		v.hi++
	}
	return v
}

func (v value) cmp(o value) int { return cmp.Or(cmp.Compare(v.hi, o.hi), cmp.Compare(v.lo, o.lo)) }

// appendValue appends the low n bytes of v.
func appendValue(dst []byte, v value, n uint32, order datatype.Order) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], v.hi)
	binary.BigEndian.PutUint64(b[8:], v.lo)
	if order == datatype.HostEndian && set.LittleHost {
		for i := range n {
			dst = append(dst, b[15-i])
		}
		return dst
	}
	return append(dst, b[16-n:]...)
}

func (v value) bytes(n uint32, order datatype.Order) []byte {
	return appendValue(make([]byte, 0, n), v, n, order)
}

func parseValue(b []byte, order datatype.Order) value {
	var v value
	little := order == datatype.HostEndian && set.LittleHost
	for i := range b {
		c := b[i]
		if little {
			c = b[len(b)-1-i]
		}
		v = v.shl(8)
		v.lo |= uint64(c)
	}
	return v
}

func wideNumber(x *syntax.Const, w want) *constTerm {
	n, ok := new(big.Int), false
	if !x.Quoted && len(x.Text) <= maxDigits && x.Text != "" && x.Text[0] >= '0' && x.Text[0] <= '9' {
		_, ok = n.SetString(x.Text, 0)
	}
	switch {
	case !ok:
		fail(x.Pos, "%s is not a number", describe(x))
	case n.BitLen() > int(w.width):
		fail(x.Pos, "value %s is out of range: it can have %d bits", x.Text, w.width)
	}
	var b [16]byte
	return &constTerm{w.info(x.Pos), parseValue(n.FillBytes(b[:]), datatype.BigEndian)}
}

// maxDigits fits an octal number of 128 bits, with prefix and some zeros.
const maxDigits = 64
