// Package localsocket serves gRPC on a frontend's Unix socket if the aggregator is another process. An
// in-process aggregator's socket serves the same.
//
// It takes a function that registers services, such as local state, and opens a socket with mode 0660.
// Read server.go first; socket.go makes the socket.
//
// Readers share the process with the frontend. Connections and their resources are limited, and silent
// readers are disconnected.
//
// # Concurrency
//
// Serve runs on the caller's goroutine until its context ends. Calls run on gRPC's goroutines.
//
// # Errors
//
// Serve refuses a path of a non-socket or of an answering process. It replaces a stale
// socket. A panic ends only its call, and is logged.
package localsocket
