// Package admission decides whether an update of a fragment may reach the
// writer. Messages of the API come in; a compiled [desired.Update] or a
// [RejectedError] with every violation that was found goes out. Read builder.go
// first.
//
// A [Builder] handles one update. It checks names and sizes, compiles
// declarations and rules, packs elements, and compares what the update asks for
// with the rights and limits of its publisher (package access). It runs on the
// goroutine of the request, so that a large or wrong update costs only its
// sender.
//
// [OverLimit] compares what a publisher would hold in all of its fragments with
// the publisher's limits. The writer calls it, because only the merged state
// knows that sum. [KernelRejection] describes an update that the kernel refused.
//
// The package does not know which fragments exist or what other publishers
// declare, except through the [Scope] that it is given. Whether references
// resolve and declarations agree is decided in package desired.
//
// # Concurrency
//
// A Builder belongs to one goroutine. It starts goroutines that pack elements
// and compile rules; Finish and Wait return after they have ended. A panic in
// one of them is raised again in Finish or Wait.
//
// # Errors
//
// A refused update is a *[RejectedError]. A malformed name of a publisher or
// fragment is an error that wraps [ErrInvalidName].
package admission
