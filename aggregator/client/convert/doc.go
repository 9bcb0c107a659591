// Package convert turns objects of package nft into messages of the protocol, and
// back, for publishers that read .nft files or compile declarations. Start with
// File, which reads a whole file.
//
// It copies fields and checks nothing: the parser has checked what comes from a
// file, and the aggregator checks what is sent. Frontends that send messages of
// their own do not need it.
//
// # Concurrency
//
// All functions are pure: they share slices with their argument and change
// nothing.
package convert
