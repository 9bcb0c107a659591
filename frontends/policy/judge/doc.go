// Package judge decides whether the policies of this node allow a connection, and by which
// policy and rule: what the rendered rules would do with a packet of it.
//
// In come flows, and the present state of the policies through the interface State; out
// come verdicts. The renderer implements State, so that no member of a set is stored twice.
// Read verdict.go first, then judge.go. The package does no I/O.
//
// A flow is what conntrack knows of a connection, because the rules match that too: the
// source is the address that opened it, before source NAT. The destination address and
// port are those after destination NAT. So the verdict is the same for packets of both
// directions.
//
// # Concurrency
//
// A Judge has no state of its own. It is as safe for concurrent use as its State.
//
// # Errors
//
// There are none. An unknown action is a bug, and panics.
package judge
