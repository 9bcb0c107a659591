// Package object compiles the declarations of named objects, flowtables and
// chains.
//
// What comes in is a declaration in nft's words ([Compile], [CompileFlowtable],
// [CompileChain]) or what the kernel has dumped ([Object.Complete]); what goes out are the
// numbers and attributes that the kernel expects, and the canonical declaration.
// Read kind.go first: one table describes all kinds of named objects. fields.go has their
// attributes, and check.go what they must have. chain.go knows hooks and priorities, which
// flowtables use too.
//
// The package does not check whether a reference to an object exists: compile.Scope does.
//
// # Errors
//
// An error in the text of an object is a *syntax.Error with a position in that
// text, wrapped.
//
// # Concurrency
//
// Functions keep no state. Their results are not modified afterwards.
package object
