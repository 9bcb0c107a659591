// Package linediff compares two texts line by line.
//
// It anchors the comparison at lines that occur once in both texts, as they do in rule sets,
// and takes the longest series of anchors that is in the same order in both. Between two
// anchors lines are equal from either end, or they are removed and added. That takes time in
// proportion to n log n, and the result is what a reader would mark by hand.
package linediff
