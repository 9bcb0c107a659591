package expr

import google "github.com/google/nftables/expr"

// Expr is one expression of a rule: a [Library], or one of the types of this
// package.
type Expr interface {
	// table fills in the kernel's name of the expression and its attributes, in the
	// order in which nft(8) sends them.
	table(t *table)
}

// Library is an expression of google/nftables, which nft(8) marshals as the library does.
type Library struct{ google.Any }
