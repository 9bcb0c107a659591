package compile

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/syntax"
)

// synproxy evaluates a synproxy statement.
func (r *ruleCompiler) synproxy(s *syntax.SynProxy) {
	r.requireConntrack(s)
	e := &google.SynProxy{SackPerm: s.SackPerm, Timestamp: s.Timestamp}
	if s.MSS != nil {
		e.Mss, e.MssValueSet = *s.MSS, true
	}
	if s.WScale != nil {
		e.Wscale, e.WscaleValueSet = *s.WScale, true
	}
	r.addLibrary(e)
}
