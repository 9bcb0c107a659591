// Package traffic exports metrics of traffic to Services on this node: new connections, dropped packets
// and active connections.
//
// It reads kernel counters over the aggregator's socket. Element counters restart if an element is replaced;
// the exported counters are monotonic.
//
// The package reads only on scrapes, at most once in some seconds.
package traffic
