// Package scan splits text in nft's own syntax into tokens, for nft/syntax and nft/ruleset.
//
// A [Scanner] returns tokens with their positions. A [Cursor] holds the current token and the next one,
// and has the methods for recursive-descent parsers. The package does not know nft's keywords.
//
// # Errors
//
// Illegal text becomes a token of kind [Illegal] with the error message as Text.
//
// # Concurrency
//
// Scanners and cursors are not safe for concurrent use.
package scan
