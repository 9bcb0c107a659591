// Package decompile turns the expressions of a rule in the kernel back into text.
//
// [Rule] takes the expressions of any program's rule, as decoded by package expr, and the sets they refer
// to. It returns a tree of package syntax, printed like `nft -s list ruleset` of nft(8) 1.0.6.
//
// The text is never wrong: Rule compiles it again, and compares the bytes of the expressions and the
// elements of the anonymous sets. Before this, an anonymous set with a single element becomes a comparison,
// and names compared by iptables-nft up to their NUL are padded. Comparisons added by the compiler are left
// out if the bytes stay the same.
//
// Matches and targets of iptables-nft are printed without their data, as newer nft lists them (xt match
// "conntrack"). All other expressions of such a rule are compared.
//
// # Errors
//
// The error names the expression that has no text, and wraps [errors.ErrUnsupported].
//
// # Concurrency
//
// Functions keep no state.
package decompile
