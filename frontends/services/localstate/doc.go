// Package localstate serves the local model to readers over gRPC, as the service
// LocalState: first the state as it is, and then the changes.
//
// In come snapshots and changes of the model; out go messages of package modelpb. Read
// localstate.go first. A reader that has applied all responses has what the renderer of
// this frontend has, so another back end can be built on it. The package does not change
// the model.
//
// # Concurrency
//
// Changed never blocks: however slow a reader is, it has only a set of the Services whose
// latest state it has not received. Each call of Watch runs on the goroutine of gRPC.
//
// # Errors
//
// Watch fails with InvalidArgument if a request names half of a Service, and if the reader
// wants only the present state, with Unavailable before everything is known and with
// NotFound for a Service that has no rules here.
package localstate
