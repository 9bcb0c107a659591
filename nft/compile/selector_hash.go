package compile

import (
	google "github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// The values are from offset to offset+mod-1.
type numberTerm struct {
	termInfo
	// numgen, jhash or symhash
	word string
	// x: operand of jhash; random: mode of numgen
	x           term
	random      bool
	seed        *uint32
	mod, offset uint32
}

func newNumber(pos syntax.Pos, word string, mod, offset uint32) *numberTerm {
	switch {
	case mod == 0:
		fail(pos, "%s: the modulus is 0: want 1 or more", word)
	case uint64(mod)+uint64(offset)-1 > 1<<32-1:
		fail(pos, "%s: offset %d is too large for modulus %d", word, offset, mod)
	}
	info := termInfo{pos: pos, typ: datatype.Integer, bits: 32, width: 32, order: datatype.HostEndian}
	return &numberTerm{termInfo: info, word: word, mod: mod, offset: offset}
}

func (r *ruleCompiler) numgen(x *syntax.Numgen) *numberTerm {
	t := newNumber(x.Pos, "numgen", x.Mod, x.Offset)
	t.random = x.Mode == "random"
	return t
}

func (r *ruleCompiler) hash(x *syntax.Hash) *numberTerm {
	if x.X == nil {
		return newNumber(x.Pos, "symhash", x.Mod, x.Offset)
	}
	t := newNumber(x.Pos, "jhash", x.Mod, x.Offset)
	t.seed, t.x = x.Seed, r.eval(x.X, want{})
	if isConstant(t.x) {
		fail(x.X.Position(), "%s is a constant: nothing to hash", describe(x.X))
	}
	return t
}

func (t *numberTerm) load(g *generator, dst register) {
	switch t.word {
	case "numgen":
		mode := uint32(unix.NFT_NG_INCREMENTAL)
		if t.random {
			mode = unix.NFT_NG_RANDOM
		}
		g.emit(&google.Numgen{Register: dst.number(), Modulus: t.mod, Type: mode, Offset: t.offset})
	case "jhash":
		used := g.regs.used
		src := g.loadNew(t.x)
		g.regs.used = used
		g.emitOwn(&expr.Hash{
			Dest: dst.number(), Mod: t.mod, Seed: t.seed, Offset: t.offset,
			Type: unix.NFT_HASH_JENKINS, Source: src.number(), Len: t.x.info().bytes(),
		})
	default:
		g.emitOwn(&expr.Hash{Dest: dst.number(), Mod: t.mod, Seed: t.seed, Offset: t.offset, Type: unix.NFT_HASH_SYM})
	}
}
