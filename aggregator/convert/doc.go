// Package convert converts objects of package nft to messages of the protocol, and back. Start with File,
// which reads a whole .nft file.
//
// It copies fields and checks only the family of a table: the parser has checked files, and package
// admission checks updates.
//
// # Concurrency
//
// All functions are pure. Results share slices with the arguments.
package convert
