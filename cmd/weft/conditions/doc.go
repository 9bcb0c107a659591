// Package conditions answers whether weft is well: it reports the conditions of a process to
// operators.
//
// Checks of [Condition] come in from the parts of weft; a [Process], a list of [Status], goes out. A
// condition is OK, degraded (a problem, but rules are in force) or not ready. Read kinds.go first,
// with meanings and remedies, then condition.go and monitor.go.
//
// # Views
//
// A process has /readyz (200 unless a condition is not ready; with ?verbose each condition), the
// metrics weft_degraded and weft_ready for alerts, and for a lasting condition the log and Events of
// the Node. A node has "weft get status", the first lines of "weft doctor", and the headline of the
// status page, which read all its processes over their sockets. Views only show. TestViews of package
// daemon makes each condition true and reads all views.
//
// # Other questions
//
// Some parts of weft answer other questions:
//
//   - /healthz and /livez answer kube-proxy's: whether load balancers may send new connections to the
//     node, and whether a restart would help the process.
//   - The start for systemd and the takeover from kube-proxy wait only for the rules of the process's
//     own frontends, because publishers of other units may wait for this one.
//   - A handover waits until the rules of kube-proxy are in force.
//   - The findings of doctor on the host concern the node: sysctls, rules of other programs, limits
//     nearly reached, endpoints that do not answer.
//   - Findings in rules, and refused objects in lists, concern one publisher or object. Refused
//     objects of a frontend make its condition degraded, refused fragments "fragments".
//
// # Concurrency
//
// A Monitor is safe for concurrent use. Each answer calls the checks, so checks must return soon. Run
// must be called once.
package conditions
