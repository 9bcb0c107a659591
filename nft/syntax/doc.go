// Package syntax parses and prints rules of nft(8).
//
// [ParseRule] reads a rule, [ParseTypeOf] the selectors of a typeof declaration, [ParseStateful]
// the statements of an element, [ParseObject] the body of a named object. All return trees, which
// [Print] and its siblings print. Package ruleset reads files.
//
// The package knows the grammar of statements and expressions, but not their meaning: package
// compile knows that "ip saddr" has 32 bits, and constants are text until a datatype reads them.
// New header fields and ct keys need no change here. New headers, and meta keys without the word
// "meta", do: see headers and metaKeys. Texts longer than [MaxRuleLength] or nested deeper than
// [MaxDepth] are rejected.
//
// Read parser.go first, then stmt.go and expr.go. Each statement has a file (stmt_queue.go) with
// its type, parser and printer. The file of an expression (expr_payload.go) has one or a few.
//
// # Adding a statement
//
// Here: write stmt_NAME.go (type, parse function, printStmt), add the first word to the switch in
// stmt.go, and a sample to samples in print_test.go. In package compile: add the file of the rule
// statement and its case in the switch over statements. In package json: add a case in stmt.go.
//
// A new option of a statement changes stmt_NAME.go here, stmt.go in package json, the statement's
// file in package compile and, for a new attribute of the kernel, the expression's file in package
// expr.
//
// # Printing
//
// Printing is canonical and idempotent. Parsing the printed text gives the same tree, and nft(8)
// accepts the text.
//
// # Errors
//
// Every error is an [*Error] with line, column and source line. [Error.Excerpt] draws a caret
// below the place.
//
// # Concurrency
//
// All functions are pure. Trees do not change after parsing, so goroutines may share them.
package syntax
