// Package daemon runs the long-lived verbs of weft: the aggregator, the Service frontend and the
// NetworkPolicy frontend, alone or in one process.
//
// [Flags.Run] turns flags and configuration files into a process with its socket, HTTP servers for
// health and metrics, log and events on the Node. Read daemon.go first. Parts start in this order: the
// aggregator and its socket (aggregator.go), the frontends (cluster.go, services.go, policy.go), the
// HTTP servers (http.go, pages.go).
//
// The package rejects a wrong setting before it changes anything. The aggregator and the frontends own
// the rules.
//
// # Concurrency
//
// The parts run in one errgroup. If one fails or the context ends, all parts stop.
//
// # Hand-made parts
//
// Metrics of client-go and of health checks are component-base's. pages.go writes /flagz, /statusz and
// /healthz itself, because Kubernetes has them in its API server's library. notify.go writes one datagram
// to systemd without a library.
package daemon
