// Package admission decides whether an update of a fragment may reach the writer. It turns messages
// of the API into a compiled [desired.Update], or a [RejectedError] with every violation found.
// Read builder.go first.
//
// A [Builder] handles one update. It checks names and sizes, compiles declarations and rules, packs
// elements, and checks the rights and limits of the publisher (package access). It runs on the
// request's goroutine, so that a large or wrong update costs only its sender.
//
// [OverLimit] compares a publisher's sum over all its fragments with its limits. The writer calls
// it, because only the merged state knows the sum. [KernelRejection] describes an update refused by
// the kernel.
//
// The package knows other fragments and declarations only through the [Scope]. Package desired
// decides whether references resolve and declarations agree.
//
// # Concurrency
//
// A Builder belongs to one goroutine. It starts goroutines that pack elements and compile rules;
// Finish and Wait wait for their end. A panic in one is raised again in Finish or Wait.
//
// # Errors
//
// A refused update is a *[RejectedError]. A malformed name of a publisher or fragment is an error
// that wraps [ErrInvalidName].
package admission
