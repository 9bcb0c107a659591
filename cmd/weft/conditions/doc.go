// Package conditions answers whether weft is well: it names everything that can be wrong with a
// process, keeps the one list of it, and reports it wherever an operator looks.
//
// In come checks, one for each [Condition]; out goes a [Process], the list of [Status], to all
// readers. Read kinds.go first, which has the conditions with their meanings and remedies, then
// condition.go and monitor.go. A condition is OK, degraded (something is wrong, but rules are in
// force) or not ready. What a check looks at belongs to the parts of weft; this package knows
// nothing of it.
//
// # Views
//
// The views of a process are /readyz (200 unless a condition is not ready; with ?verbose each
// condition), the metrics weft_degraded and weft_ready, and for a condition that lasts the log
// and Events of the Node. The views of a node read the lists of all its processes over their
// sockets: "weft get status", the first lines of "weft doctor", and the headline of the status
// page. Alerts read the metrics. No view decides anything by itself. TestViews of package daemon
// makes each condition true and reads all views.
//
// # Other questions
//
// Some parts of weft answer other questions than whether weft is well:
//
//   - /healthz and /livez answer kube-proxy's questions: whether load balancers may send new
//     connections to the node, and whether a restart would help the process.
//   - The start that systemd waits for, and the takeover from kube-proxy, wait only for the rules
//     of this process's own frontends. Publishers of other units may wait for this one.
//   - A handover waits until the rules of kube-proxy are in force.
//   - What doctor finds on the host, such as sysctls, rules of other programs, limits that are
//     nearly reached and endpoints that do not answer, concerns the node and not weft.
//   - Findings in rules, and refused objects in lists, concern one publisher or object. Objects of
//     a frontend that are refused make its condition degraded, refused fragments "fragments".
//
// # Concurrency
//
// A Monitor may be used by any number of goroutines. Checks are called by all of them, for
// each answer, and must return soon. Run reports changes, and must be called once.
package conditions
