// Package daemon runs the long-lived verbs of weft: the aggregator, the Service frontend and the
// NetworkPolicy frontend, alone or in one process.
//
// Read daemon.go first. Parts start in this order: the aggregator and its socket (aggregator.go), the
// frontends (cluster.go, services.go, policy.go), the HTTP servers (http.go, pages.go).
//
// The package rejects a wrong setting before it changes anything.
package daemon
