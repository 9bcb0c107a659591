// Package localsocket serves gRPC on a Unix socket of a frontend whose aggregator is
// another process. With an aggregator in the process, the aggregator's socket serves the
// same.
//
// In comes a function that registers services, such as the local state of a frontend; out
// goes a socket with the mode 0660. Read socket.go.
//
// # Concurrency
//
// Serve runs on the goroutine of the caller until its context ends.
//
// # Errors
//
// Serve refuses a path on which another process answers, and replaces a socket that a
// killed process left.
package localsocket
