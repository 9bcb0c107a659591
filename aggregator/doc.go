// Package aggregator merges the fragments of all publishers into one ruleset
// and is the only thing that writes it to the kernel.
//
// An Aggregator has two halves. Admission (admit*.go) runs on the goroutine of
// a request: it checks names and limits, parses rule text and packs elements,
// and answers with every violation that it finds. What it admits goes into a
// queue. The writer (loop.go) is one goroutine that owns the merged state and
// the kernel: it takes everything that is pending, applies it to the state,
// commits the difference as one batch, and answers with the revision.
//
// It knows nothing of gRPC, of peers' credentials (both are aggregator/server),
// nor of Services; it opens no socket itself: the kernel and conntrack come in
// through Config.
//
// # The writer
//
// While the limiter has tokens an update is committed at once; under load the
// updates of one interval share a commit. An update that changes nothing is
// acknowledged with the last revision, without a commit. An update that the
// kernel refuses is taken out and its fragment stays at the last committed
// content; the others of the same batch are committed at once without it.
//
// Revisions count commits and grow across restarts: the last one is kept in the
// state directory, and a start counts from that or from the Unix time in
// milliseconds, whichever is greater, so losing the directory does not set
// them back.
//
// # Flows
//
// UDP conntrack entries that a commit made stale are removed after it, by one
// goroutine that never delays the next commit. While a removal runs, what later
// commits make stale is joined.
//
// # Concurrency
//
// Aggregator and Session are safe for concurrent use, except that the updates
// of one Session must come from one goroutine at a time, as their order is
// their meaning. Run may be called once.
//
// # Errors
//
// A refused update is a *RejectedError. The other conditions are the sentinels
// in errors.go. Match with errors.Is and errors.As.
package aggregator
