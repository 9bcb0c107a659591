// Package convert turns objects of package nft into messages of the protocol, and back.
// Start with File, which reads a whole .nft file.
//
// It copies fields and checks nothing, except for the family of a table: the parser has
// checked what comes from a file, and package admission checks what is sent.
//
// # Concurrency
//
// All functions are pure. Results share slices with the arguments.
package convert
