// Package conditions answers whether weft is well. It names all conditions of a process, keeps their
// only list, and reports it to operators.
//
// A check for each [Condition] comes in; a [Process], the list of [Status], goes out to all readers.
// Read kinds.go first, the conditions with their meanings and remedies, then condition.go and
// monitor.go. A condition is OK, degraded (a problem, but rules are in force) or not ready. The parts
// of weft own the checks.
//
// # Views
//
// The views of a process are /readyz (200 unless a condition is not ready; with ?verbose each
// condition), the metrics weft_degraded and weft_ready, and for a lasting condition the log and Events
// of the Node. The views of a node read the lists of all its processes over their sockets: "weft get
// status", the first lines of "weft doctor", and the headline of the status page. Alerts read the
// metrics. Views only show. TestViews of package daemon makes each condition true and reads all views.
//
// # Other questions
//
// Some parts of weft answer other questions than whether weft is well:
//
//   - /healthz and /livez answer kube-proxy's questions: whether load balancers may send new
//     connections to the node, and whether a restart would help the process.
//   - The start for systemd and the takeover from kube-proxy wait only for the rules of this
//     process's own frontends. Publishers of other units may wait for this one.
//   - A handover waits until the rules of kube-proxy are in force.
//   - The findings of doctor on the host concern the node: sysctls, rules of other programs, limits
//     nearly reached, endpoints that do not answer.
//   - Findings in rules, and refused objects in lists, concern one publisher or object. Refused
//     objects of a frontend make its condition degraded, refused fragments "fragments".
//
// # Concurrency
//
// A Monitor is safe for concurrent use. Its readers call the checks for each answer, so checks must
// return soon. Run reports changes, and must be called once.
package conditions
