// Package packed stores the elements of sets and maps in tables without pointers.
//
// [Elements] are those of one fragment's share: key and data as they are, and eight bytes more.
// An nftset.Element is made when it is asked for. Options are stored beside the tables. [Counts]
// count by packed keys. A [Union] has the merged ranges of a set with auto-merge. A [View] is an
// immutable copy that shares pages with the elements.
//
// # Concurrency
//
// Elements, Counts and Unions belong to one goroutine. Any goroutine may use a View.
package packed
