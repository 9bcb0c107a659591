// Package conditions answers whether weft is well.
//
// A [Condition] is OK, degraded (a problem, but rules are in force) or not ready. kinds.go has all kinds,
// with meanings and remedies; read it first.
//
// # Views
//
// A process has /readyz, the metrics weft_degraded and weft_ready, and for a lasting condition the log and
// Events of the Node. "weft get status", "weft doctor" and the status page read all processes over their
// sockets. TestViews of package daemon makes each condition true and reads all views.
//
// # Other questions
//
// Other parts of weft answer these:
//
//   - /healthz and /livez answer as kube-proxy's: whether load balancers may send new connections to the node,
//     and whether a restart would help the process.
//   - systemd and the takeover from kube-proxy wait only for the rules of the process's own frontends, because
//     publishers of other units may wait for this one.
//   - doctor's findings concern the node: sysctls, rules of other programs, limits, endpoints without answers.
//   - Findings in rules concern one publisher; refused objects, one object.
//
// # Concurrency
//
// A Monitor is safe for concurrent use. Each answer calls the checks, so checks must return soon. Call Run
// once.
package conditions
