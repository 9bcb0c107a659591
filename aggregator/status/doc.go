// Package status keeps the status of fragments and publishers for readers.
//
// The aggregator reports commits, rejections and sessions; answers are messages of the protocol. Read
// fragments.go first.
//
// # Concurrency
//
// All methods are safe for concurrent use. Readers delay the aggregator's writer only while copying the
// list. Messages are shared and immutable.
package status
