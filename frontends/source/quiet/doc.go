// Package quiet limits the log of client-go, which logs each failed attempt to reach an API server.
//
// It passes records on unchanged, except about canceled requests, and repeats within a minute. Records with
// equal messages and attributes are equal.
//
// # Concurrency
//
// A handler is safe for concurrent use.
package quiet
