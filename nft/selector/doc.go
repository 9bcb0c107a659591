// Package selector has tables of the words of nft: protocol headers and their fields, extensions of
// headers, and the keys of meta, ct, rt, socket and ipsec expressions, with their types, widths, byte
// orders and kernel numbers.
//
// Functions look up the table row of a selector of package syntax or of a kernel number. Read header.go
// first, then extension.go and meta.go.
//
// The package does not know the earlier matches of a rule: package compile adds dependencies, and package
// set stores selectors of typeof declarations. The tables follow nft(8) 1.0.6.
//
// # Errors
//
// Functions that look up one name or number return nil if it is unknown. Errors are a *syntax.Error at the
// selector. They are returned with this type: compare an error with nil before you convert it to error.
//
// # Concurrency
//
// The tables are never modified.
package selector
