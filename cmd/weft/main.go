// Command weft is a node agent for Kubernetes that owns nftables: an
// aggregator that merges fragments of ruleset from many publishers and is the
// only writer to the kernel, and the Service frontend that replaces
// kube-proxy. Each verb is in a file of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/client"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code: 0 done, 1 failed,
// 2 the command line is wrong, 3 what "weft plan" says.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once, if an orderly end takes too long.
	context.AfterFunc(ctx, stop)
	root := newRootCmd()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if code := (exitCode)(0); errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintf(stderr, "weft: %s\n", describe(err))
	if errors.As(err, new(*usageError)) {
		return 2
	}
	return 1
}

// describe returns an error's text; of a rejection every violation, with the
// offending line of text.
func describe(err error) string {
	var rejected *client.RejectedError
	if errors.As(err, &rejected) {
		return rejected.Detail()
	}
	return err.Error()
}

// usageError is a command line that means nothing.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usage makes an error that ends in exit code 2.
func usage(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// unknownCommand names what the word may be meant for.
func unknownCommand(root *cobra.Command, word string) error {
	if like := root.SuggestionsFor(word); len(like) > 0 {
		return usage("unknown command %q: did you mean %s?", word, strings.Join(like, " or "))
	}
	return usage("unknown command %q (see weft --help)", word)
}

// checkArgs makes wrong arguments of a command a wrong command line.
func checkArgs(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage("%s: %w (see %s --help)", cmd.CommandPath(), err, cmd.CommandPath())
		}
		return nil
	}
}

func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:   "weft",
		Short: "Many publishers, one nftables ruleset: Kubernetes Services and third-party rules in atomic commits",
		Long: `weft is a node agent for Kubernetes that owns nftables. Frontends publish
fragments of ruleset over a Unix socket; one aggregator merges them and is the
only writer to the kernel.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd == root && len(words) > 0 {
			return unknownCommand(root, words[0])
		}
		return usage("%s: %w (see %s --help)", cmd.CommandPath(), err, cmd.CommandPath())
	})
	root.AddCommand(
		newRunCmd(),
		newAggregatorCmd(),
		newServicesCmd(),
		newApplyCmd(),
		newPublishCmd(),
		newDeleteCmd(),
		newCheckCmd(),
		newPlanCmd(),
		newGetCmd(),
		newWatchCmd(),
		newCleanupCmd(),
		newDemoCmd(),
		newVersionCmd(),
	)
	root.Args = cobra.ArbitraryArgs
	root.SuggestionsMinimumDistance = 2
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(root, args[0])
	}
	for _, cmd := range root.Commands() {
		checkArgs(cmd)
	}
	return root
}
