// Package judge decides whether the policies of this node allow a connection, and by which policy
// and rule. Its verdict is the effect of the rendered rules on a packet of the connection.
//
// It takes flows, and the state of the policies through the interface State. The renderer
// implements State, so that members of sets are stored once. Read verdict.go first, then judge.go.
// The package does no I/O.
//
// A flow is a connection in conntrack, like in the rules: the source is the address that opened it,
// before source NAT; the destination address and port follow destination NAT. So the verdict is the
// same for packets of both directions.
//
// # Concurrency
//
// A Judge is stateless. It is as safe for concurrent use as its State.
//
// # Errors
//
// An unknown action is a bug, and panics.
package judge
