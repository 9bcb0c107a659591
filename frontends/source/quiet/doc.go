// Package quiet limits the log of client-go, which logs each failed attempt to reach an API server.
//
// It passes on records not logged within the last minute, unchanged. Records with equal messages and
// attributes are equal.
//
// # Concurrency
//
// A handler is safe for concurrent use.
package quiet
