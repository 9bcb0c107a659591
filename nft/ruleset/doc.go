// Package ruleset parses and prints the text of nft(8) files: tables with their chains, sets,
// objects and flowtables.
//
// [Parse] reads the text of a file, replaces variables, executes commands and returns tables of
// package nft.
//
// Rules, statements and bodies of objects are stored in canonical form. Types of sets and keys of
// elements are text until package set reads them. The package opens no files. It rejects handles,
// and commands that need the kernel, such as list.
//
// Read parse.go first, then command.go. variable.go replaces variables before parsing, and
// source.go maps places in the expanded text to the original.
//
// # Errors
//
// Functions that parse return an [*ErrorList] of *syntax.Error, at most [MaxErrors]. The parser
// continues at the next statement after an error.
//
// # Concurrency
//
// All functions are pure and safe for concurrent use.
package ruleset
