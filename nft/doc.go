// Package nft is the object model of an nftables ruleset: plain values with text fields, in the
// words of nft(8) and sigs.k8s.io/knftables. It does no I/O and does not check the values.
//
// The packages below it turn text into netlink messages. All steps except the last are pure
// functions:
//
//	text -> syntax, ruleset, json (rules as trees, files as values of this package)
//	     -> compile               (names and datatypes -> netlink expressions)
//	     -> kernel                (one netlink batch)
//
// Read nft.go first. LANGUAGE.md has the differences between weft and nft(8). Several goroutines
// may read a value that does not change.
package nft
