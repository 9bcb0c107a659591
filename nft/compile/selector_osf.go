package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// maxGenre is the length of an operating system's name with its NUL
// (NFT_OSF_MAXGENRELEN).
const maxGenre = 16

// osfPart is the type of both keys of osf.
var osfPart = selectorPart(datatype.String, 8*maxGenre, datatype.HostEndian)

// osfTerm loads the name of the operating system that sent a SYN. The kernel
// knows those whose fingerprints nfnl_osf(8) or nft(8) have loaded.
type osfTerm struct {
	termInfo
	ttl     uint8
	version bool
}

// osf evaluates an osf selector.
func (r *ruleCompiler) osf(x *syntax.OSF) (term, error) {
	if err := r.routed("osf", x.Pos); err != nil {
		return nil, err
	}
	t := &osfTerm{termInfo: termInfo{pos: x.Pos, typ: osfPart.typ, bits: 8 * maxGenre, width: 8 * maxGenre, order: osfPart.order}}
	switch x.TTL {
	case "":
	case "loose":
		t.ttl = osfTTLLess
	case "skip":
		t.ttl = osfTTLNoCheck
	default:
		return nil, errorAt(x.Pos, "osf: unknown ttl option %q: want loose or skip", x.TTL)
	}
	switch x.Key {
	case "name":
	case "version":
		t.version = true
	default:
		return nil, errorAt(x.Pos, "unknown key %q of osf: want name or version", x.Key)
	}
	return t, nil
}

// load is loader's.
func (t *osfTerm) load(g *generator, dst register) error {
	g.emitOwn(&OSF{Register: dst.number(), TTL: t.ttl, Version: t.version})
	return nil
}
