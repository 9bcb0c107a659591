package compile

import (
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// register is a place among the 16 registers of 32 bits, counted from 0.
type register uint32

// number returns the kernel's number of a register: that of the 128-bit
// register if one begins there, as nft chooses it, otherwise that of the 32-bit one
// (NFT_REG_1, NFT_REG32_00).
func (r register) number() uint32 {
	if r%4 == 0 {
		return 1 + uint32(r)/4
	}
	return 8 + uint32(r)
}

// registers hands out registers as a stack.
type registers struct{ used uint32 }

// take returns n free 32-bit registers in a row.
func (s *registers) take(n uint32, pos syntax.Pos) register {
	if s.used+n > expr.Slots {
		fail(pos, "expression takes more than the kernel's %d bytes of registers", 4*expr.Slots)
	}
	r := register(s.used)
	s.used += n
	return r
}

// takeFor returns the registers that nft uses for a value: what a
// concatenation needs, and a 128-bit register for all others.
func (s *registers) takeFor(t term) register {
	if c, ok := t.(*concatTerm); ok {
		return s.take(c.slots(), c.pos)
	}
	return s.take(4, t.info().pos)
}
