// Package top is the verb "weft top": what the daemon does at present, as top(1) shows
// processes.
//
// In come answers of the aggregator's socket and of the Service frontend's; out go publishers
// by their updates, Services by their new connections, and the last commits. Read command.go
// first, then sample.go, which asks, rates.go, which compares two samples, view.go, which makes
// tables of them, and screen.go, the terminal.
package top
