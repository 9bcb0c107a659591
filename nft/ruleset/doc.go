// Package ruleset reads and prints files of nft(8): tables with their chains, sets,
// objects and flowtables.
//
// [Parse] reads the text of a file and returns tables of package nft, with variables
// replaced and commands carried out; [Format] prints tables. [Include] joins several
// files into one text, for programs that may read files. [ParsePositions] and [FindRule]
// also return where the declarations are, so that a checker can point at them.
//
// A file declares a ruleset. Rules, statements and the bodies of objects are parsed by
// package syntax and stored in canonical form. The types of sets and the keys of
// elements stay text until package compile reads them. The package does not read files. It
// does not accept handles, or commands that need the kernel, such as list.
//
// Read parse.go first, then command.go (what a file may contain). chain.go, set.go,
// object.go and flowtable.go parse the declarations, change.go flush and delete.
// variable.go replaces variables before the parser starts, and source.go maps places of
// the replaced text to the original.
//
// # Errors
//
// The errors of functions that read files are an [*ErrorList]; errors about one declaration
// or rule are a *syntax.Error. The parser continues after an error at the next
// statement, so the list has the errors of all statements, at most [MaxErrors].
//
// # Concurrency
//
// All functions are pure and safe for concurrent use.
package ruleset
