package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weft-proxy/weft/aggregator/client"
)

// Describe returns an error for people, with every violation and its line of text.
func Describe(err error) string {
	var rejected *client.RejectedError
	if errors.As(err, &rejected) {
		return rejected.Detail()
	}
	text := err.Error()
	var rpc interface{ GRPCStatus() *status.Status }
	if errors.As(err, &rpc) {
		st := rpc.GRPCStatus()
		text = strings.Replace(text, st.String(), statusText(st), 1)
	}
	return text
}

func statusText(st *status.Status) string {
	switch {
	case st.Message() == "":
		return "error " + st.Code().String()
	case st.Code() == codes.Internal || st.Code() == codes.Unknown:
		return "internal error: " + st.Message()
	default:
		return st.Message()
	}
}

// UsageError is a wrong command line: exit code 2.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }

func (e *UsageError) Unwrap() error { return e.err }

// Usagef returns a *UsageError, formatted as by fmt.Errorf.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// ExitCode only sets the exit code: the verb has printed the reason.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// CheckArgs makes the errors of Args UsageErrors, also of subcommands.
func CheckArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		CheckArgs(sub)
	}
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Usagef("%s: %w (see %s --help)", cmd.CommandPath(), err, cmd.CommandPath())
		}
		return nil
	}
}
