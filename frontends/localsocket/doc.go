// Package localsocket serves gRPC on a Unix socket of a frontend whose aggregator is
// another process. With an aggregator in the process, the aggregator's socket serves the
// same.
//
// In comes a function that registers services, such as the local state of a frontend; out
// goes a socket with the mode 0660. Read server.go first; socket.go makes the socket.
//
// The services are for reading, and their readers share the process with the frontend: the
// number of connections, and what each may hold, is limited, and readers that do not answer
// are disconnected.
//
// # Concurrency
//
// Serve runs on the goroutine of the caller until its context ends. Calls run on goroutines
// of gRPC.
//
// # Errors
//
// Serve refuses a path on which another process answers, or that is not a socket. It
// replaces a socket that a killed process left. A panic in a call ends that call alone, and
// is logged.
package localsocket
