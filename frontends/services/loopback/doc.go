// Package loopback serves NodePorts on 127.0.0.1 and ::1 with sockets, because the kernel does not route
// packets from loopback addresses to other devices. Only TCP is served.
//
// Each NodePort with an endpoint has a listener for each family; an accepted connection goes on to an
// endpoint, from an address of the node.
//
// # Limits
//
// All ports together pass on at most Config.Connections connections at once. Further ones wait: one accepted
// by each port, the others in the port's backlog.
//
// # Cost
//
// A connection has two goroutines and six files: two sockets, and two pipes with which io.Copy moves bytes in
// the kernel (splice).
//
// # Concurrency
//
// All methods are safe for concurrent use.
//
// # Errors
//
// A port that cannot be opened is counted, logged, reported as an event, and retried (package listen). If an
// endpoint does not answer, the client's connection is closed.
package loopback
