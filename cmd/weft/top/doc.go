// Package top is the verb "weft top": the current activity of the daemon, as top(1) shows processes.
//
// It shows publishers by their updates, Services by their new connections, and the last commits, from
// the sockets of the aggregator and the Service frontend. Read command.go first, then sample.go
// (asks), rates.go (compares samples), view.go (tables) and screen.go (the terminal).
//
// golang.org/x/term sets the terminal's mode. screen.go writes seven control sequences itself: a library
// for screens would be larger than the command.
package top
