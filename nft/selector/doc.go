// Package selector is the vocabulary of nft as tables: protocol headers and their
// fields, extensions of headers, and the keys of meta, ct, rt, socket and ipsec
// expressions, with their types, widths, byte orders and kernel numbers.
//
// What comes in is a selector of package syntax or a kernel number; what goes out
// is a row of a table. Read header.go first, then extension.go and meta.go.
//
// The package does not know what a rule has matched before: package compile adds
// dependencies, and package set stores selectors of typeof declarations. The tables
// follow nft(8) 1.0.6.
//
// # Errors
//
// Errors are a *syntax.Error at the selector.
//
// # Concurrency
//
// The tables are never modified.
package selector
