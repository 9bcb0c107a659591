// Package syntax parses and prints rules of nft(8).
//
// [ParseRule] reads a rule, [ParseTypeOf] a typeof declaration, [ParseStateful] the statements of an
// element, [ParseObject] the body of a named object. All return trees, which [Print] and its siblings
// print.
//
// The package knows the grammar: constants are text until a datatype reads them. New headers, and
// meta keys without the word "meta", must be added to headers and metaKeys. Texts longer than
// [MaxRuleLength] or nested deeper than [MaxDepth] are rejected.
//
// # Adding a statement
//
// Write stmt_NAME.go, and add the first word to the switch in stmt.go and a sample to print_test.go.
// In package compile, write the statement's method and add a row with its class to kind.go. In package
// json, add a case in stmt.go.
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
