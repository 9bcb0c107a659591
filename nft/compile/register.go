package compile

import (
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

type register uint32

// number prefers, like nft, a 128-bit register (NFT_REG_1) that begins at r to the 32-bit one
// (NFT_REG32_00).
func (r register) number() uint32 {
	if r%4 == 0 {
		return 1 + uint32(r)/4
	}
	return 8 + uint32(r)
}

// registers is a stack.
type registers struct{ used uint32 }

// take returns the first of n consecutive registers.
func (s *registers) take(n uint32, pos syntax.Pos) register {
	if s.used+n > expr.Slots {
		fail(pos, "expression takes more than the kernel's %d bytes of registers", 4*expr.Slots)
	}
	r := register(s.used)
	s.used += n
	return r
}

// takeFor takes the registers that nft takes: the slots of a concatenation, or 128 bits for another
// value.
func (s *registers) takeFor(t term) register {
	if c, ok := t.(*concatTerm); ok {
		return s.take(c.slots(), c.pos)
	}
	return s.take(4, t.info().pos)
}
