// Package top is the verb "weft top": the current activity of the daemon, as top(1) shows processes.
//
// It compares samples from the sockets of the aggregator and the Service frontend. screen.go writes
// seven control sequences itself: a library for screens would be larger than the command.
package top
