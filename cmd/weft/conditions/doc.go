// Package conditions names what can be wrong with a process of weft, and reports it wherever
// an operator looks: in /readyz, in metrics, in events of the Node, in the log, and in
// "weft get status".
//
// In come checks, one for each [Condition]; out goes the same list of [Status] to all readers.
// Read condition.go, then monitor.go. A condition is OK, degraded (something is wrong, but
// rules are in force) or not ready. What a check looks at belongs to the parts of weft; this
// package knows nothing of it.
//
// # Concurrency
//
// A Monitor may be used by any number of goroutines. Checks are called by all of them, for
// each answer, and must return soon. Run reports changes, and must be called once.
package conditions
