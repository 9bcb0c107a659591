// Package conditions answers whether weft is well.
//
// Checks of [Condition] come in from the parts of weft; a [Process], a list of [Status], goes out.
// A condition is OK, degraded (a problem, but rules are in force) or not ready.
//
// # Views
//
// A process has /readyz (200 unless a condition is not ready), the metrics weft_degraded and
// weft_ready, and for a lasting condition the log and Events of the Node. "weft get status", "weft
// doctor" and the status page read all processes over their sockets.
//
// # Other questions
//
// Other parts of weft answer these:
package conditions
