// Package scan cuts text in nft's own syntax into tokens. The parsers of rules
// (nft/syntax) and of files (nft/ruleset) share it.
//
// Text goes in; tokens with their positions come out of a [Scanner]. A [Cursor] holds
// the current token and one token of lookahead, and has the methods that
// recursive-descent parsers need. The package does not know any keyword of nft.
//
// Read token.go first, then scanner.go and cursor.go.
//
// # Errors
//
// Text that cannot be scanned becomes a token of kind [Illegal] whose Text is the error
// message. The parsers give it a source line.
//
// # Concurrency
//
// Scanners and cursors are not safe for concurrent use. Tokens are plain values.
package scan
