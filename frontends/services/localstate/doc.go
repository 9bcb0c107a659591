// Package localstate serves the local model over gRPC, as the service LocalState: first the state, then
// changes.
//
// It takes snapshots and changes of the model, and sends messages of package modelpb. Read localstate.go
// first. All responses together have the renderer's input, so another back end can use them. The package
// does not change the model.
//
// # Concurrency
//
// Changed never blocks: a slow reader only has a set of Services with unsent state. Each Watch runs on
// gRPC's goroutine.
//
// # Errors
//
// Watch fails with InvalidArgument if a request lacks a Service's name or namespace. For the present
// state only, it fails with Unavailable before everything is known, and with NotFound for a Service
// without rules here.
package localstate
