// Package syntax reads and prints the language of nft(8): a scanner, a
// recursive-descent parser, the syntax tree and a canonical printer.
//
// It knows how statements and expressions are put together, not what they
// mean: that "ip saddr" is a payload field of 32 bits is the business of
// package compile, and constants stay text until a datatype reads them. So
// the tree is small, and new header fields, meta keys and ct keys need no
// change here.
//
// [ParseRule], [ParseTypeOf] and [ParseObject] read single rules and declarations,
// [ParseFile] a whole file into the object model, with its variables expanded and its
// commands carried out. [Include] makes one text of several files, for programs that may
// read files.
//
// The package refuses rules that are longer than [MaxRuleLength] or nested
// deeper than [MaxDepth], and files longer than [MaxFileLength]; it reads no
// file (include is an error to [ParseFile]) and resolves no name but that of a
// variable.
//
// # Printing
//
// Printing is canonical and idempotent: parsing what [Print] returned gives
// the same tree, and nft(8) accepts it.
//
// # Errors
//
// Every error of the parsers is an [*Error] with line, column and the source
// line, or for files an [*ErrorList] of them; [Error.Excerpt] draws the caret.
//
// # Concurrency
//
// All functions are pure. Trees are not changed after parsing, so they may be
// read by any number of goroutines.
package syntax
