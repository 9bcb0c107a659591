// Package daemon runs the long-lived verbs of weft: the aggregator, the Service frontend and the
// NetworkPolicy frontend, alone or in one process.
//
// [Flags.Run] turns flags and configuration files into a process with its socket, HTTP servers for
// health and metrics, log and events on the Node. Read daemon.go first. Parts start in this order: the
// aggregator and its socket (aggregator.go), the frontends (cluster.go, services.go, policy.go), the
// HTTP servers (http.go, pages.go).
//
// The package rejects a wrong setting before it changes anything.
//
// # Concurrency
//
// If a part fails or the context ends, all parts stop.
package daemon
