// Package localstate offers the local model to readers over gRPC, as the service
// LocalState: the state as it is, and then what changes.
//
// It changes nothing and decides nothing. What it sends is package model's own
// serialised form, so that another back end can be built on it: whoever has applied
// all responses has what the renderer of this frontend has.
//
// # Concurrency
//
// Changed never blocks: a reader's part is the set of Services that it has not seen
// in their latest state, however slow it is. Each call of Watch runs on the
// goroutine that gRPC gives it.
//
// # Errors
//
// Only Watch's, as localstate.proto has them.
package localstate
