// Package selector has tables of nft(8) 1.0.6: protocol headers and their fields, extensions of headers,
// and the keys of meta, ct, rt, socket and ipsec, with types, widths, byte orders and kernel numbers.
//
// Functions look up a selector of package syntax or a kernel number. Read header.go first, then
// extension.go and meta.go. The package does not know a rule's earlier matches.
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
