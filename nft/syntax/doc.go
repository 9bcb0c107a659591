// Package syntax parses and prints rules of nft(8).
//
// Text goes in: [ParseRule] reads a rule, [ParseTypeOf] the selectors of a typeof
// declaration, [ParseStateful] the statements of an element, [ParseObject] the body of a
// named object. Trees come out, and [Print] and its siblings turn them back into text.
// Package ruleset reads files.
//
// The package knows how statements and expressions are composed, not what they mean.
// That "ip saddr" is a header field of 32 bits is known to package compile, and constants
// stay text until a datatype reads them. New header fields and ct keys need no change here,
// but new headers, and meta keys without the word "meta", do: see headers and metaKeys.
// The package rejects texts that are longer than [MaxRuleLength] or nested deeper than
// [MaxDepth].
//
// Read parser.go first, then stmt.go and expr.go. Each statement has a file of its own
// (stmt_queue.go) with its type, its parser and its printer; the file of an expression
// (expr_payload.go) has one or a few related ones.
//
// # Adding a statement
//
// Here: write stmt_NAME.go (type, parse function, printStmt), add the first word to the
// switch in stmt.go, and add a sample to samples in print_test.go.
// In package compile: add the file of the rule statement and its case in the switch over
// statements; package json has a case in stmt.go.
// A new option of a statement needs four files: stmt_NAME.go here, stmt.go in package json,
// the file of the statement in package compile and, if the kernel has a new attribute for
// it, the file of the expression in package expr.
//
// # Printing
//
// Printing is canonical and idempotent. Parsing the printed text gives the same tree, and
// nft(8) accepts the text.
//
// # Errors
//
// Every error is an [*Error] with line, column and the source line. [Error.Excerpt] draws
// a caret below the place.
//
// # Concurrency
//
// All functions are pure. Trees do not change after parsing, so any number of goroutines
// may read them.
package syntax
