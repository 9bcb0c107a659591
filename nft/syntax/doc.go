// Package syntax parses and prints rules of nft(8).
//
// The Parse functions return trees, which [Print] and its siblings print.
//
// The package knows the grammar: constants are text until a datatype reads them. New headers, and
// meta keys without the word "meta", must be added to headers and metaKeys. Texts longer than
// [MaxRuleLength] or nested deeper than [MaxDepth] are rejected.
//
// # Adding a statement
//
// The packages below nft, in order, each with a sample in its tests:
//
//   - syntax: stmt_NAME.go, and the first word in the switch of stmt.go
//   - expr, for an expression without a type in google/nftables: NAME.go and a row in decode.go
//   - compile: the statement's method, a row with its class in kind.go, lines in testdata/corpus/NAME.txt;
//     the class in LANGUAGE.md
//   - json: a row in phrase.go, or a case in stmt.go
//   - decompile: a case in statement.go
//   - eval: a case in expr.go, or packets with the statement are undecided
//   - cost: the price in packet.go, or it costs as little as a comparison
//
// # Printing
//
// Printing is canonical and idempotent: the text parses to the same tree, and nft(8) accepts it.
//
// # Errors
//
// Every error is an [*Error] with line, column and source line.
//
// # Concurrency
//
// All functions are pure. Trees do not change after parsing.
package syntax
