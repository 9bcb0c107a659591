// Package admission decides whether an update of a fragment may reach the writer, the goroutine of
// package aggregator that merges and commits. It turns messages of the API into a compiled
// [desired.Update], or a [RejectedError] with every violation found. Read builder.go first.
//
// A [Builder] runs on the request's goroutine, so that a large or wrong update costs only its
// sender. The package knows other fragments only through the [Scope]; package desired decides
// whether references resolve and declarations agree.
//
// # Concurrency
//
// A Builder belongs to one goroutine. It starts goroutines; Finish and Wait wait for their end.
// Finish raises their panics again.
//
// # Errors
//
// A refused update is a *[RejectedError]. A malformed name of a publisher or fragment wraps
// [ErrInvalidName].
package admission
