package expr

import google "github.com/google/nftables/expr"

// Expr is one expression of a rule: a [Library], or one of the types of this
// package.
type Expr interface {
	// table fills in the kernel's name of the expression and its attributes, in the
	// order in which nft(8) sends them.
	table(t *table)
}

// Library wraps an expression of google/nftables, whose bytes are those of nft(8). For some
// of them this package has a table and marshals them itself.
type Library struct{ google.Any }

// Unwrap returns the expression that a Library wraps, and any other expression as it is.
func Unwrap(e Expr) any {
	if k, ok := e.(Library); ok {
		return k.Any
	}
	return e
}
