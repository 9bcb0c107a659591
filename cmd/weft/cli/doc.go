// Package cli holds what the verbs of weft share on the command line: the exit
// codes, the flags that name an aggregator, the -o flag, and the completion of
// names.
//
// It turns arguments and the aggregator's answers into text, JSON or YAML, exit codes
// ([ExitCode]) and errors about a wrong command line ([UsageError]). Read errors.go first,
// then connection.go and output.go.
//
// The package prints no table of its own: each verb knows its columns.
package cli
