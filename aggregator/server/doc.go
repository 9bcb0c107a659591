// Package server offers an aggregator on a Unix socket: gRPC, with the identity
// of the peer taken from the kernel.
//
// It decides who may call, turns the aggregator's errors into gRPC codes (in
// status.go, and nowhere else), and keeps hostile or broken callers from doing
// harm: messages are bounded, a panic in a handler ends one call and not the
// daemon. What an update means is the business of package aggregator.
//
// Without a configuration a peer may call if its uid is 0 or that of the daemon,
// and may use any publisher name; all others get PERMISSION_DENIED and a line in
// the log.
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
