// Package cli is the common command line of weft's verbs: flags, -o, completion, exit codes
// ([ExitCode]) and errors of a wrong command line ([UsageError]).
package cli
