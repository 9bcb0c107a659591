// Package localstate serves what a node enforces of network policies to readers over gRPC,
// as the service LocalState: first the state as it is, and then the changes.
//
// In come the changes of the model, and snapshots from a Source; out go messages of package
// statepb. Read localstate.go first; convert.go makes the messages. A reader that asks for
// the members of sets and has applied all responses has what the renderer of this frontend
// has, so another back end can be built on it. The package does not change the model.
//
// # Concurrency
//
// Changed never blocks: however slow a reader is, it has only a set of the objects whose
// latest state it has not received. Each call of Watch runs on the goroutine of gRPC.
//
// # Errors
//
// Watch fails with Unavailable if the reader wants only the present state and not everything
// is known yet.
package localstate
