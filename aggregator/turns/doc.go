// Package turns shares a slow operation among callers: one call at a time, and after a call its caller rests
// for ten times as long as the call took, at most 10 s.
//
// # Concurrency
//
// Turns may be used by any goroutine, a Turn by one at a time.
package turns
