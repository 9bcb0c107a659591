// Package traffic exports what packets to Services do on this node, as metrics: new
// connections, dropped packets, and active connections.
//
// In come what the kernel has counted, over the aggregator's socket, and the ports of Services
// from package render; out go metrics. Read collector.go first, which reads when Prometheus
// scrapes; connections.go makes counters that only grow of the counters of elements, which
// begin again when an element is replaced; flows.go counts the entries of conntrack.
//
// The package reads nothing without a scrape, at most once in some seconds, and never while the
// aggregator waits for it.
package traffic
