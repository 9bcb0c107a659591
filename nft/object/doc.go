// Package object compiles the declarations of named objects, flowtables and chains.
//
// [Compile], [CompileFlowtable] and [CompileChain] take a declaration in nft's words, and
// [Object.Complete] a dump of the kernel. Read kind.go first: one table describes all kinds.
// compile.Scope checks references to objects.
//
// # Errors
//
// An error in the text of an object wraps a *syntax.Error with a position in this text.
//
// # Concurrency
//
// Functions keep no state. Their results are not modified afterwards.
package object
