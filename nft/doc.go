// Package nft is the object model of an nftables ruleset: plain values with text fields, in the words of
// nft(8) and sigs.k8s.io/knftables. It does no I/O, does not check the values, and has no types for
// fragments, publishers or Kubernetes.
//
// The packages below it turn text into netlink messages. All steps except the last are pure functions:
//
//	text -> syntax, ruleset, json (rules as trees, files as values of this package)
//	     -> compile               (names and datatypes -> netlink expressions)
//	     -> kernel                (one netlink batch)
//
// Package compile uses datatype (constants), selector (headers and keys), set and object (declarations),
// expr (the kernel's expressions), userdata (comments) and attr (netlink attributes), which return errors
// in the fields. Comments have at most 128 bytes, without double quotes and control characters:
// userdata.CheckComment. See [EmptyComment].
//
// Read nft.go first. The text fields accept nft's own language. LANGUAGE.md describes its tests, and the
// differences between weft and nft(8).
//
// # Concurrency
//
// Values have no locks. Several goroutines may read a value that does not change.
package nft
