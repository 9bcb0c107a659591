// Package intervals keeps intervals of packed keys in order. The ID of an interval is its first and its
// last key, both of one length, with big-endian numbers.
//
// An [Index] finds, inserts and removes intervals in a time nearly independent of their number. A [Union]
// joins intervals that overlap or touch.
//
// The package is pure. An Index belongs to one goroutine.
package intervals
