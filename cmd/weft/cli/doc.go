// Package cli is the common command line of weft's verbs: the flags of an aggregator, -o, completion
// of names, exit codes ([ExitCode]) and errors of a wrong command line ([UsageError]).
//
// Read errors.go first, then connection.go and output.go.
package cli
