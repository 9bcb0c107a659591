// Package expr has the expressions of nf_tables, the instructions of a rule in the kernel.
//
// [Encode] marshals [Expr] values to NFTA_RULE_EXPRESSIONS, and [Format] prints them as `nft
// --debug=netlink` does. Read expr.go first, then table.go.
//
// [Library] wraps an expression of github.com/google/nftables. This package has own types only for
// expressions that the library lacks or marshals differently from nft(8), and for NAT, Fib, Log and
// Objref; TestOwnTypesAreNeeded fails once a type is not needed. One table of attributes drives
// marshalling, unmarshalling and listing, also for the library's types, because the library
// allocates a dozen times for each and panics on some truncated input.
//
// Canonical text is the result of syntax.PrintStmt for a [StatefulStmt].
//
// # Errors
//
// Errors about a statement are a *syntax.Error. Unmarshalling never panics.
//
// # Concurrency
//
// Functions keep no state. Marshalling does not modify the expression.
package expr
