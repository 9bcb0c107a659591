package compile

import "github.com/google/nftables/expr"

// Translates reports whether the rule translates addresses: dnat, snat,
// masquerade or redirect.
func (r *Rule) Translates() bool {
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *Masq:
			return true
		case kernelExpr:
			switch e.Any.(type) {
			case *expr.NAT, *expr.Masq, *expr.Redir:
				return true
			}
		}
	}
	return false
}
