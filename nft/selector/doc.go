// Package selector has tables of the words of nft: protocol headers and their
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
// Functions that look up one name or number return nil if there is none. Errors are a
// *syntax.Error at the selector. They are returned as that type: compare one with nil
// before it becomes an error.
//
// # Concurrency
//
// The tables are never modified.
package selector
