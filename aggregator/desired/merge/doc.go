// Package merge holds the state: tables with their chains, sets and objects, and each fragment's
// share of them.
//
// [State.Apply] checks an update against other fragments, and merges or rejects it as a whole. A
// journal undoes all changes since the last Accept. An update costs what it touches. Start at
// apply.go, then read part.go and set.go.
//
// The parts beside the merge follow each change: usage (charge.go), prices of paths (reach.go,
// hook.go), deadlines of elements (deadline.go), backends of watched flows (flows.go), and what a
// Scope or Record may have otherwise (observed.go).
//
// The package does no I/O, reads no clock and starts no goroutine. A State belongs to one
// goroutine; a [Scope] may be used from any.
package merge
