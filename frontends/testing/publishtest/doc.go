// Package publishtest is an aggregator for tests of frontends. It does not interpret rules.
//
// # Concurrency
//
// An Aggregator is safe for concurrent use.
package publishtest
