// Package quiet limits the log of client-go, which logs each attempt to reach an API
// server that fails, and requests that ended with their context.
//
// In come log records; out go those that were not logged within the last minute. Two
// records are the same if their messages and all their attributes are. Read quiet.go. The
// package does not change records.
//
// # Concurrency
//
// A handler is safe for concurrent use.
package quiet
