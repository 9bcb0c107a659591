// Package syntax parses and prints rules of nft(8).
//
// [ParseRule] reads a rule, [ParseTypeOf] the selectors of a typeof declaration, [ParseStateful]
// the statements of an element, [ParseObject] the body of a named object. All return trees, which
// [Print] and its siblings print.
//
// The package knows the grammar, but not the meaning: constants are text until a datatype reads
// them. New headers, and meta keys without the word "meta", must be added to headers and metaKeys.
// Texts longer than [MaxRuleLength] or nested deeper than [MaxDepth] are rejected.
//
// # Adding a statement
//
// Write stmt_NAME.go (type, parse function, printStmt), and add the first word to the switch in
// stmt.go and a sample to samples in print_test.go. In package compile, add the rule statement's
// file and its case in the switch over statements. In package json, add a case in stmt.go.
//
// A new option of a statement changes stmt_NAME.go here, stmt.go in package json, the statement's
// file in package compile and, for a new kernel attribute, the file in package expr.
//
// # Printing
//
// Printing is canonical and idempotent: the printed text parses to the same tree, and nft(8)
// accepts it.
//
// # Errors
//
// Every error is an [*Error] with line, column and source line.
//
// # Concurrency
//
// All functions are pure. Trees do not change after parsing, so goroutines may share them.
package syntax
