// Package packed stores the elements of sets and maps in hash tables without pointers.
//
// [Elements] has a share's elements: each takes key, data and eight bytes; options are beside the
// tables. [Counts] counts by packed keys. [Union] merges ranges. A [View] is an immutable copy that
// shares pages.
//
// # Concurrency
//
// Elements, Counts and Unions belong to one goroutine. Any goroutine may use a View.
package packed
