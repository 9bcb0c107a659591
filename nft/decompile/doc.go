// Package decompile turns the expressions of a rule in the kernel back into the rule's text.
//
// What comes in are the expressions of any program's rule, as package expr decodes them, and the sets that
// they refer to; what goes out is a tree of package syntax, which prints as nft(8) 1.0.6 lists the rule without
// counts (`nft -s list ruleset`). Read rule.go first, then machine.go.
//
// The text is never wrong: [Rule] compiles it again, and compares the bytes of the expressions and the elements
// of the anonymous sets. Before that, an anonymous set of one element becomes a comparison, because its text means
// that to nft, and names that iptables-nft compares up to their NUL are padded. Comparisons that the compiler adds by
// itself are left out if the bytes stay the same, such as "meta l4proto tcp" before "tcp dport 80".
//
// Matches and targets of iptables, which iptables-nft puts into rules, are printed as newer versions of nft list
// them (xt match "conntrack"), without their data. All other expressions of such a rule are compared.
//
// # Errors
//
// The error says which expression has no text. It wraps [errors.ErrUnsupported]. Callers name the rule by its
// table, its chain and its handle then.
//
// # Concurrency
//
// Functions keep no state.
package decompile
