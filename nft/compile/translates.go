package compile

import (
	google "github.com/google/nftables/expr"

	"github.com/weft-proxy/weft/nft/expr"
)

// Translates reports whether the rule translates addresses: dnat, snat,
// masquerade or redirect.
func (r *Rule) Translates() bool {
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Masq:
			return true
		case expr.Library:
			switch e.Any.(type) {
			case *google.NAT, *google.Redir:
				return true
			}
		}
	}
	return false
}
