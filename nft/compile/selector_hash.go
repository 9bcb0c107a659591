package compile

import (
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/syntax"
)

// hashTerm computes a hash value.
type hashTerm struct {
	termInfo
	// x is what jhash hashes, nil for symhash.
	x           term
	seed        *uint32
	mod, offset uint32
}

// hash evaluates a hash.
func (r *ruleCompiler) hash(x *syntax.Hash) term {
	word := "symhash"
	if x.X != nil {
		word = "jhash"
	}
	switch {
	case x.Mod == 0:
		return fail(x.Pos, "%s: the modulus is 0: want 1 or more", word)
	case uint64(x.Mod)+uint64(x.Offset)-1 > 1<<32-1:
		return fail(x.Pos, "%s: offset %d is too large for modulus %d", word, x.Offset, x.Mod)
	}
	info := termInfo{pos: x.Pos, typ: datatype.Integer, bits: 32, width: 32, order: datatype.HostEndian}
	t := &hashTerm{termInfo: info, seed: x.Seed, mod: x.Mod, offset: x.Offset}
	if x.X == nil {
		return t
	}
	t.x = r.eval(x.X, want{})
	if isConstant(t.x) {
		return fail(x.X.Position(), "%s is a constant: nothing to hash", describe(x.X))
	}
	return t
}

// load is loader's.
func (t *hashTerm) load(g *generator, dst register) {
	e := &expr.Hash{Dest: dst.number(), Mod: t.mod, Seed: t.seed, Offset: t.offset, Type: unix.NFT_HASH_SYM}
	if t.x != nil {
		src := g.regs.takeFor(t.x)
		g.load(t.x, src)
		g.regs.release(t.x)
		e.Type, e.Source, e.Len = unix.NFT_HASH_JENKINS, src.number(), t.x.info().bytes()
	}
	g.emitOwn(e)
}
