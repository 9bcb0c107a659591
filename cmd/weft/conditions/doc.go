// Package conditions answers whether weft is well.
//
// Checks of [Condition] come in from the parts of weft; a [Process], a list of [Status], goes out.
// A condition is OK, degraded (a problem, but rules are in force) or not ready.
//
// # Views
//
// A process has /readyz (200 unless a condition is not ready), the metrics weft_ready and
// weft_degraded (1 for each condition that is not OK), and for a lasting problem the log and Events
// of the Node. "weft get status", "weft doctor" and the status page read all processes over the
// aggregator's socket.
//
// # Other questions
//
// /healthz and /livez answer kube-proxy's questions: whether load balancers may use the node, and
// whether a restart helps. "weft doctor" also examines the host.
package conditions
