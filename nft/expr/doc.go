// Package expr holds the expressions of nf_tables: the instructions that a rule
// consists of in the kernel.
//
// What comes in is a list of [Expr] values; what goes out is the payload of
// NFTA_RULE_EXPRESSIONS ([Encode]), or the listing that `nft --debug=netlink`
// prints ([Format]). Read expr.go first, then table.go, encode.go
// and one small expression such as dup.go.
//
// An expression of github.com/google/nftables is wrapped in [Library]; [Unwrap] returns it. Types
// of this package exist only for expressions that the library lacks or marshals
// differently from nft(8), and for those whose flags are one number here and fields there
// (NAT, Fib, Log, Objref). Each has a file of its own, and TestOwnTypesAreNeeded fails
// when the library no longer lacks it. One table of the attributes of an expression drives
// marshalling, unmarshalling and listing, also for the types of the library: it allocates
// about a dozen times for each, and panics on some truncated input.
//
// The package does not allocate registers: package compile decides which expressions a
// rule needs.
//
// # Stateful expressions
//
// stateful.go converts between the statements counter, limit, quota and ct count
// and their expressions, for rules, elements of sets and named objects. Sets and elements
// keep statements as text, such as "limit rate 5/second". The text is canonical if it is
// what syntax.PrintStmt prints of what [StatefulStmt] returns.
//
// # Errors
//
// Errors about a statement are a *syntax.Error. Unmarshalling never panics.
//
// # Concurrency
//
// Functions keep no state. Nothing modifies an expression that is marshalled.
package expr
