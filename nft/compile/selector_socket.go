package compile

import (
	"github.com/weft-proxy/weft/nft/expr"
	"github.com/weft-proxy/weft/nft/selector"
	"github.com/weft-proxy/weft/nft/syntax"
)

// socketTerm loads what the packet's socket says.
type socketTerm struct {
	termInfo
	key   *selector.HostKey
	level uint32
}

// socket evaluates a socket selector.
func (r *ruleCompiler) socket(x *syntax.Socket) term {
	key := selector.SocketByName(x.Key)
	if key == nil {
		return fail(x.KeyPos, "unknown key %q of socket: want transparent, mark, wildcard or cgroupv2", x.Key)
	}
	r.routed("socket", x.Pos)
	if x.Level > maxCgroupLevel {
		return fail(x.KeyPos, "cgroup level %d: the greatest is %d", x.Level, maxCgroupLevel)
	}
	return &socketTerm{hostInfo(key, x.Pos), key, x.Level}
}

// maxCgroupLevel is the deepest ancestor that the kernel looks at
// (nft_socket_init).
const maxCgroupLevel = 255

// load is loader's.
func (t *socketTerm) load(g *generator, dst register) {
	g.emitOwn(&expr.Socket{Key: t.key.Key, Level: t.level, Register: dst.number()})
}
