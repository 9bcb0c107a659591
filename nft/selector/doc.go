// Package selector has the vocabulary of nft as tables: headers and their
// fields, extensions of headers, and the keys of meta, ct, rt, socket and
// ipsec expressions.
package selector
