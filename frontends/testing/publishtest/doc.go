// Package publishtest is an aggregator for tests of frontends. It keeps published elements, and rejects
// updates as a test requests. It does not interpret rules.
//
// # Concurrency
//
// An Aggregator is safe for concurrent use.
package publishtest
