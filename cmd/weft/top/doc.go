// Package top is the verb "weft top": what the daemon does at present, as top(1) shows
// processes.
//
// In come answers of the aggregator's socket, of the Service frontend's, and entries of the
// kernel's connection tracking table; out go publishers by their updates, Services by their
// new connections, and the last commits. Read command.go first, then sample.go, which asks,
// rates.go, which compares two samples, view.go, which makes tables of them, and screen.go,
// the terminal.
//
// The kernel has no counters of Services. A new connection is an entry of connection tracking
// that was not there at the sample before.
package top
