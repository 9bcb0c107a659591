// Package expr holds the expressions of nf_tables: the instructions that a rule
// consists of in the kernel.
//
// What comes in is a list of [Expr] values; what goes out is the payload of
// NFTA_RULE_EXPRESSIONS ([Encode]), or the listing that `nft --debug=netlink`
// prints (the String methods). Read expr.go first, then attribute.go, encode.go
// and one small expression such as dup.go.
//
// An expression of github.com/google/nftables is wrapped in [Library]. Types of
// this package exist only for expressions that the library lacks or marshals
// differently from nft(8); each has a file of its own with a table of its
// attributes, and TestOwnTypesAreNeeded fails when the library no longer lacks
// it. The writer marshals the six most frequent expressions of the library
// itself, because the library allocates about a dozen times for each.
//
// The package does not know registers, rules or sets: package compile decides
// which expressions a rule needs.
//
// # Stateful expressions
//
// stateful.go converts between the statements counter, limit, quota and ct count
// and their expressions, for rules, elements of sets and named objects.
//
// # Errors
//
// Errors about a statement are a *syntax.Error. Unmarshalling never panics.
//
// # Concurrency
//
// Functions keep no state. Nothing modifies an expression that is marshalled.
package expr
