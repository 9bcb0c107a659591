package compile

import (
	"github.com/weft-proxy/weft/nft/datatype"
	"github.com/weft-proxy/weft/nft/syntax"
)

// socketSelectors are the keys of the socket expression (enum
// nft_socket_keys).
var socketSelectors = [...]hostKey{
	{name: "transparent", key: 0, dump: "transparent", typ: datatype.Integer, bits: 8, order: datatype.HostEndian, flag: true},
	{name: "mark", key: 1, dump: "mark", typ: datatype.Mark, bits: 32, order: datatype.HostEndian},
	{name: "wildcard", key: 2, dump: "wildcard", typ: datatype.Integer, bits: 8, order: datatype.HostEndian, flag: true},
	{name: "cgroupv2", key: 3, dump: "cgroupv2", typ: datatype.CGroupV2, bits: 64, order: datatype.HostEndian},
}

// socketByName returns a key, or nil.
func socketByName(name string) *hostKey {
	for i := range socketSelectors {
		if socketSelectors[i].name == name {
			return &socketSelectors[i]
		}
	}
	return nil
}

// socketTerm loads what the packet's socket says.
type socketTerm struct {
	termInfo
	key   *hostKey
	level uint32
}

// socket evaluates a socket selector.
func (r *ruleCompiler) socket(x *syntax.Socket) (term, error) {
	key := socketByName(x.Key)
	if key == nil {
		return nil, errorAt(x.KeyPos, "unknown key %q of socket: want transparent, mark, wildcard or cgroupv2", x.Key)
	}
	if err := r.routed("socket", x.Pos); err != nil {
		return nil, err
	}
	if x.Level > maxCgroupLevel {
		return nil, errorAt(x.KeyPos, "cgroup level %d: the greatest is %d", x.Level, maxCgroupLevel)
	}
	return &socketTerm{key.info(x.Pos), key, x.Level}, nil
}

// maxCgroupLevel is the deepest ancestor that the kernel looks at
// (nft_socket_init).
const maxCgroupLevel = 255

// load is loader's.
func (t *socketTerm) load(g *generator, dst register) error {
	g.emitOwn(&Socket{Key: t.key.key, Level: t.level, Register: dst.number()})
	return nil
}
