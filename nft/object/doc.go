// Package object compiles the declarations of named objects, flowtables and chains.
//
// The input is a declaration in nft's words ([Compile], [CompileFlowtable], [CompileChain]) or a dump of
// the kernel ([Object.Complete]). The output is the kernel's numbers and attributes, and the canonical
// declaration. Read kind.go first: one table describes all kinds of named objects. fields.go has their
// attributes, and check.go their requirements. chain.go has hooks and priorities, also for flowtables.
//
// The package does not check whether a reference to an object exists: compile.Scope does.
//
// # Errors
//
// An error in the text of an object wraps a *syntax.Error with a position in this text.
//
// # Concurrency
//
// Functions keep no state. Their results are not modified afterwards.
package object
