// Package events distributes the aggregator's events to watchers.
//
// A watcher lagging by more than 256 events is dropped.
//
// # Concurrency
//
// A Hub is safe for concurrent use.
package events
