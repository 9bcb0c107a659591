// Package judge decides like the rendered rules whether policies of this node allow a connection,
// and by which rule.
//
// It does no I/O.
//
// A flow is a connection in conntrack: the source is the opener before source NAT; the destination
// follows destination NAT. So packets of both directions have the same verdict.
//
// # Concurrency
//
// A Judge is as safe for concurrent use as its State.
package judge
