// Package events hands events to watchers.
//
// Events come in from any goroutine (Publish) and go out to the callers of Watch, each in its own
// goroutine. A watcher that lags more than 256 events behind is dropped. The package does not know the
// content of events. Read events.go.
//
// # Concurrency
//
// A Hub is safe for concurrent use.
package events
