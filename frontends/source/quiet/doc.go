// Package quiet limits the log of client-go, which logs each failed attempt to reach an API server and
// each canceled request.
//
// It takes log records and passes on records not logged within the last minute. Records with equal
// messages and attributes are equal. Read quiet.go. The package does not change records.
//
// # Concurrency
//
// A handler is safe for concurrent use.
package quiet
