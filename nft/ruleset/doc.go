// Package ruleset reads and prints files of nft(8): tables with their chains, sets, objects and
// flowtables.
//
// [Parse] reads the text of a file, replaces variables, executes commands and returns tables of
// package nft. [Format] prints tables. [Include] joins files, for programs that may read files.
// [ParsePositions] and [FindRule] also return the places of declarations, for checkers.
//
// A file declares a ruleset. Package syntax parses rules, statements and bodies of objects, which
// are stored in canonical form. Types of sets and keys of elements are text until package compile
// reads them. The package does not read files. It rejects handles, and commands that need the
// kernel, such as list.
//
// Read parse.go first, then command.go (the content of a file). chain.go, set.go, object.go and
// flowtable.go parse declarations, change.go flush and delete. variable.go replaces variables
// before parsing, and source.go maps places in the expanded text to the original.
//
// # Errors
//
// Functions that read files return an [*ErrorList]. An error about one declaration or rule is a
// *syntax.Error. The parser continues at the next statement, so the list has the errors of all
// statements, at most [MaxErrors].
//
// # Concurrency
//
// All functions are pure and safe for concurrent use.
package ruleset
