// Package turns shares a slow operation among callers: one call at a time, and after a call its caller
// rests for ten times as long as the call took. Calls come in by the names of their callers; permissions to
// go on go out. Read turns.go.
//
// The package knows neither the operation nor the callers: aggregator/server has turns of publishers, the
// status page of users.
//
// # Concurrency
//
// Turns may be used by any goroutine, a Turn by one at a time.
package turns
