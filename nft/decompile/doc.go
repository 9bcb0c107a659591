// Package decompile turns the expressions of a rule in the kernel back into text.
//
// [Rule] takes the expressions of any program's rule, as decoded by package expr, and the sets they refer
// to. It returns a tree of package syntax, printed like a rule of nft(8) 1.0.6 without counts (`nft -s list
// ruleset`). Read rule.go first, then machine.go.
//
// The text is never wrong: Rule compiles it again, and compares the bytes of the expressions and the
// elements of the anonymous sets. Before this, an anonymous set with a single element becomes a comparison,
// as nft reads its text, and names compared by iptables-nft up to their NUL are padded. Comparisons added
// by the compiler, such as "meta l4proto tcp" before "tcp dport 80", are left out if the bytes stay the
// same.
//
// Matches and targets of iptables, put into rules by iptables-nft, are printed without their data, as newer
// versions of nft list them (xt match "conntrack"). All other expressions of such a rule are compared.
//
// # Errors
//
// The error names the expression without text. It wraps [errors.ErrUnsupported]. Callers add table, chain
// and handle of the rule.
//
// # Concurrency
//
// Functions keep no state.
package decompile
