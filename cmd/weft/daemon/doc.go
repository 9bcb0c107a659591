// Package daemon runs the long-lived verbs of weft: the aggregator, the Service frontend,
// the NetworkPolicy frontend, or several of them in one process.
//
// [Flags.Run] runs the process that flags and configuration files describe: the socket, the
// HTTP servers for health and metrics, the log, and the events on the Node. Read daemon.go
// first. It wires the parts in the order in which they start: the aggregator and its socket
// (aggregator.go), the frontends (services.go, policy.go) on what they share (cluster.go),
// and the HTTP servers (http.go, pages.go).
//
// The package refuses a wrong setting before it changes anything. It knows nothing of
// rules: those belong to the aggregator and the frontends.
//
// # Concurrency
//
// The parts run in one errgroup. When one fails or the context ends, all of them stop.
package daemon
