// Package server answers gRPC calls for an aggregator on a Unix socket. The kernel
// identifies the peer.
//
// In come calls; out go calls of aggregator.Aggregator, and gRPC status codes. Read
// server.go first, then intercept.go and publish.go.
//
// It decides who may call, turns the aggregator's errors into gRPC codes (in status.go,
// and nowhere else), and limits what a connection, a call or a stream can make the daemon
// hold (connections.go, streams.go, inflight.go). A panic in a handler ends one call and
// not the daemon. A stream that does not read its answers is not read. What an update
// means is the business of package aggregator.
//
// Package access decides who may call and under which names, for each call, and again
// for open streams when the configuration changes. Without a configuration a peer may
// call if its uid is 0 or that of the daemon, and may use any publisher name; all others
// get PERMISSION_DENIED. This package enforces a publisher's rate: its streams wait for
// their turn, and a call that would wait long is refused. Refusals are counted, and
// logged with the peer.
//
// The service Flows (flows.go) does not pass through the aggregator: it reads and changes the
// kernel's connection tracking table, in turns (aggregator/turns), with a connection to the kernel
// that nothing else uses.
//
// Other packages can offer services of their own on the socket, for reading
// (Config.Register). The same credentials and limits apply to them.
//
// # A new call
//
// A new call touches these files, in this order:
//
//  1. aggregator/api/v1/weft.proto: the call and its messages; then "make generate".
//  2. aggregator/api/v1/PROTOCOL.md: what it means. A test fails if a name is missing.
//  3. A file of package aggregator: what it does. It reads the state of the writer with
//     Aggregator.ask, and returns large answers in parts.
//  4. A file of this package: inspect.go for a call that reads, methods.go for one that
//     changes. Interceptors have authorized the caller; callerFrom returns it. A call
//     that counts as an update also goes into the table updates in policy.go.
//  5. A file of aggregator/client, with the errors that it can return.
//  6. The list of calls in fuzz_test.go. A test fails if a call is missing.
//  7. A verb in cmd/weft, if people need the call.
//
// If the call is optional, Aggregator.Features gets a name for it.
//
// # Concurrency
//
// Server is safe for concurrent use. Every call runs on its own goroutine; a
// Publish stream has two more, one that receives and one that sends
// acknowledgements.
//
// # Errors
//
// Listen's errors name the socket's path and what to do. Possible sentinels:
// ErrInUse, ErrNotSocket, ErrForeignSocket.
package server
