package expr

import google "github.com/google/nftables/expr"

// Expr is a [Library] or a type of this package. Fields such as Dest, Source, Addr and Port are
// registers (enum nft_registers), 0 if unused.
type Expr interface {
	// Attributes are in the order of nft(8).
	table(t *table)
}

// Library wraps an expression of google/nftables with the same bytes as nft(8).
type Library struct{ google.Any }

// Unwrap returns the expression in a Library, or e.
func Unwrap(e Expr) any {
	if k, ok := e.(Library); ok {
		return k.Any
	}
	return e
}
