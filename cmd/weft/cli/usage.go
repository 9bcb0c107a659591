package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// UsageError is a wrong command line. The exit code is 2.
type UsageError struct{ err error }

// Error says what is wrong.
func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.err }

// Usagef returns a *UsageError; it formats as fmt.Errorf does.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// ExitCode is an error that only sets the exit code: the command has printed everything.
type ExitCode int

// Error names the code.
func (e ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// CheckArgs makes the errors of cmd.Args UsageErrors. Call it after cmd.Args is set.
func CheckArgs(cmd *cobra.Command) {
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
