package expr

import google "github.com/google/nftables/expr"

// Expr is one expression of a rule: a [Library], or one of the types of this
// package.
type Expr interface {
	// String returns the expression in libnftnl's notation, as
	// `nft --debug=netlink` prints it, without the brackets.
	String() string
	// table returns the kernel's name of the expression and its attributes in
	// the order in which nft(8) sends them.
	table() table
}

// Library is an expression that google/nftables marshals as nft(8) does.
type Library struct{ google.Any }

// table is Expr's. It is empty because google/nftables knows the attributes.
func (Library) table() table { return table{} }
