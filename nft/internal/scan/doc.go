// Package scan splits text in nft's own syntax into tokens, for the parsers of rules (nft/syntax) and of
// files (nft/ruleset).
//
// A [Scanner] returns tokens with their positions. A [Cursor] holds the current token and one token of
// lookahead, and has the methods for recursive-descent parsers. The package does not know nft's keywords.
//
// Read token.go first, then scanner.go and cursor.go.
//
// # Errors
//
// Illegal text becomes a token of kind [Illegal] with the error message as Text. The parsers add a source
// line.
//
// # Concurrency
//
// Scanners and cursors are not safe for concurrent use. Tokens are plain values.
package scan
