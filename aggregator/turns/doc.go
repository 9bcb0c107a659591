// Package turns shares something that takes long among callers: one call at a time, and for each caller a rest after a call
// for ten times as long as it took. In come calls by the names of their callers, out goes when each may go on. Read turns.go.
//
// The package knows neither what is done nor who the callers are: aggregator/server has turns of publishers, the status page
// of users.
//
// # Concurrency
//
// Turns may be used by any goroutine, a Turn by one at a time.
package turns
