// Package localstate serves the network policies that a node enforces to readers over gRPC, as the
// service LocalState: first the present state, then the changes.
//
// It takes the changes of the model, and snapshots from a Source, and sends messages of package
// statepb. Read localstate.go first; convert.go makes the messages. A reader of the members of sets
// that has applied all responses has the state of this frontend's renderer, so it can drive another
// back end. The package does not change the model.
//
// # Concurrency
//
// Changed never blocks: for a slow reader, it keeps only a set of the objects with unsent changes.
// Each call of Watch runs on the goroutine of gRPC.
//
// # Errors
//
// Watch fails with Unavailable if the reader wants only the present state and objects are still
// unknown.
package localstate
