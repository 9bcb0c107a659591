// Package intervals keeps intervals of packed keys in order. An interval is known by its ID: the first key
// and the last, both of one length, with big-endian numbers.
//
// An [Index] finds, inserts and removes an interval in a time that hardly depends on how many there are.
// A [Union] joins intervals that overlap or touch.
//
// The package is pure. An Index belongs to one goroutine.
package intervals
