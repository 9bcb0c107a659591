// Package intervals keeps intervals of packed keys in order. The ID of an interval is its first and last
// key, of equal length, with big-endian numbers.
//
// A [Union] joins overlapping or adjacent intervals. An [Index] belongs to one goroutine.
package intervals
