package compile

import (
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/set"
	"github.com/weft-proxy/weft/nft/syntax"
)

// osfTerm loads the name of the operating system that sent a SYN. The kernel
// knows those whose fingerprints nfnl_osf(8) or nft(8) have loaded.
type osfTerm struct {
	termInfo
	ttl     uint8
	version bool
}

// osf evaluates an osf selector.
func (r *ruleCompiler) osf(x *syntax.OSF) term {
	r.routed("osf", x.Pos)
	t := &osfTerm{termInfo: termInfo{pos: x.Pos, typ: set.OsfPart.Type, bits: 8 * set.MaxGenre, width: 8 * set.MaxGenre, order: set.OsfPart.Order}}
	switch x.TTL {
	case "":
	case "loose":
		t.ttl = expr.OSFTTLLess
	case "skip":
		t.ttl = expr.OSFTTLNoCheck
	default:
		return fail(x.Pos, "osf: unknown ttl option %q: want loose or skip", x.TTL)
	}
	switch x.Key {
	case "name":
	case "version":
		t.version = true
	default:
		return fail(x.Pos, "unknown key %q of osf: want name or version", x.Key)
	}
	return t
}

// load is loader's.
func (t *osfTerm) load(g *generator, dst register) {
	g.emitOwn(&expr.OSF{Register: dst.number(), TTL: t.ttl, Version: t.version})
}
