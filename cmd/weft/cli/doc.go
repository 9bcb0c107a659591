// Package cli holds what the verbs of weft share on the command line: the exit
// codes, the flags that name an aggregator, the -o flag, and the completion of
// names.
//
// In come arguments and answers of the aggregator; out go wrong-usage errors
// ([UsageError]), exit codes, and text, JSON or YAML. Read usage.go first, then
// connection.go and output.go.
//
// The package prints no table of its own: each verb knows its columns.
package cli
