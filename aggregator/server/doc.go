// Package server offers an aggregator on a Unix socket: gRPC, with the identity
// of the peer taken from the kernel.
//
// It decides who may call, turns the aggregator's errors into gRPC codes (in
// status.go, and nowhere else), and keeps hostile or broken callers from doing
// harm: what a connection, a call or a stream can make the daemon hold is bounded
// (crowd.go, backlog.go), a panic in a handler ends one call and not the daemon,
// and who does not read its answers is not read from. What an update means is the business of package aggregator.
//
// Who may call, and under which names, is decided by package access, for each
// call and again for open streams when the configuration changes. Without a
// configuration a peer may call if its uid is 0 or that of the daemon, and may use
// any publisher name; all others get PERMISSION_DENIED. A publisher's rate is kept
// here: its streams wait for their turn, a call that would wait long is refused.
// What is refused is counted, and logged with the peer.
//
// Other packages can offer services of their own on the socket, for reading
// (Config.Register): the same credentials and limits apply to them, and this
// package knows nothing else of them.
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
