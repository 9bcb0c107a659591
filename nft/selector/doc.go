// Package selector has tables of the words of nft: protocol headers and their fields, extensions of
// headers, and the keys of meta, ct, rt, socket and ipsec expressions, with their types, widths, byte
// orders and kernel numbers. The tables follow nft(8) 1.0.6.
//
// Functions look up a selector of package syntax or a kernel number. Read header.go first, then
// extension.go and meta.go.
//
// The package does not know the earlier matches of a rule: package compile adds dependencies, and package
// set stores selectors of typeof declarations.
//
// # Errors
//
// Functions return nil for an unknown name or number. Errors are a *syntax.Error at the selector, and
// returned with this type: compare an error with nil before you convert it to error.
//
// # Concurrency
//
// The tables are never modified.
package selector
