// Package expr has the expressions of nf_tables, the instructions of a rule in the kernel.
//
// [Encode] marshals [Expr] values to the payload of NFTA_RULE_EXPRESSIONS, and [Format] prints them as `nft
// --debug=netlink` does. Read expr.go first, then table.go, encode.go and one small expression such as
// dup.go.
//
// [Library] wraps an expression of github.com/google/nftables, and [Unwrap] returns it. This package has
// own types only for expressions that the library lacks or marshals differently from nft(8), and for
// expressions with flags in one number here and in fields there (NAT, Fib, Log, Objref). Each has its own
// file, and TestOwnTypesAreNeeded fails once it is not needed. One table of the attributes of an expression
// drives marshalling, unmarshalling and listing, also for the library's types: the library allocates about
// a dozen times for each, and panics on some truncated input.
//
// The package does not allocate registers: package compile chooses the expressions of a rule.
//
// # Stateful expressions
//
// stateful.go converts between the statements counter, limit, quota and ct count and their expressions, for
// rules, elements of sets and named objects. Sets and elements keep statements as text, such as "limit rate
// 5/second". Canonical text is the result of syntax.PrintStmt for a [StatefulStmt].
//
// # Errors
//
// Errors about a statement are a *syntax.Error. Unmarshalling never panics.
//
// # Concurrency
//
// Functions keep no state. Marshalling does not modify the expression.
package expr
