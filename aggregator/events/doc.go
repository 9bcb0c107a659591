// Package events distributes events to watchers.
//
// Any goroutine may publish events. A watcher lagging by more than 256 events is dropped.
//
// # Concurrency
//
// A Hub is safe for concurrent use.
package events
