// Package events distributes events to watchers.
//
// Any goroutine may publish events; each caller of Watch gets them on its own goroutine. A watcher lagging
// by more than 256 events is dropped. The package does not know the content of events. Read events.go.
//
// # Concurrency
//
// A Hub is safe for concurrent use.
package events
