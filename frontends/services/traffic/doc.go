// Package traffic exports metrics of traffic to Services on this node: new connections, dropped packets
// and active connections.
//
// It reads kernel counters over the aggregator's socket, and ports of Services from package render. Read
// collector.go first. connections.go makes monotonic counters from element counters, which restart if an
// element is replaced. flows.go counts conntrack entries.
//
// The package reads only on scrapes, at most once in some seconds, and never while the aggregator waits
// for it.
package traffic
