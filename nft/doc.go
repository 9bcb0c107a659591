// Package nft is the object model of an nftables ruleset: plain values with
// text fields, in the words of nft(8) and sigs.k8s.io/knftables. It does no
// I/O and knows nothing of fragments, publishers or Kubernetes.
//
// The pipeline below it is a chain of pure functions up to the last step:
//
//	text -> syntax (AST with positions)
//	     -> compile (scope + datatypes -> netlink expressions)
//	     -> kernel (one netlink batch)
//
// What the text fields accept is nft's own language: LANGUAGE.md says how that is
// known, and where weft and nft(8) differ.
package nft
