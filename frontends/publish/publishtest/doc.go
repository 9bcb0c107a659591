// Package publishtest is an aggregator for the tests of frontends. It keeps the elements
// of maps and sets that were published, and rejects updates as a test wants it; it knows
// nothing of rules.
//
// # Concurrency
//
// An Aggregator is safe for concurrent use.
package publishtest
