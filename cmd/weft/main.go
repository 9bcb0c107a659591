// Command weft is a node agent for Kubernetes that owns nftables: an aggregator of fragments from
// many publishers, the Service frontend that replaces kube-proxy, and the NetworkPolicy frontend.
// Each verb has a file or a package.
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

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/doctor"
	"github.com/weft-proxy/weft/cmd/weft/explain"
	"github.com/weft-proxy/weft/cmd/weft/get"
	"github.com/weft-proxy/weft/cmd/weft/top"
	"github.com/weft-proxy/weft/deploy/migrate"
	"github.com/weft-proxy/weft/nft/printable"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run returns the exit code: 0 for success, 1 for failure, 2 for a wrong command line, 3 for a plan
// with changes or differences from kube-proxy.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	// Other publishers' text must not control the terminal.
	out, errs := printable.NewWriter(stdout), printable.NewWriter(stderr)
	defer func() { _ = errors.Join(out.Flush(), errs.Flush()) }()
	stderr = errs
	root := newRootCmd()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if code := (cli.ExitCode)(0); errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintf(stderr, "weft: %s\n", cli.Describe(err))
	if errors.As(err, new(*cli.UsageError)) {
		return 2
	}
	return 1
}

func unknownCommand(root *cobra.Command, word string) error {
	if like := root.SuggestionsFor(word); len(like) > 0 {
		return cli.Usagef("unknown command %q: did you mean %s?", word, strings.Join(like, " or "))
	}
	return cli.Usagef("unknown command %q (see weft --help)", word)
}

func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:   "weft",
		Short: "Many publishers, one nftables ruleset: Kubernetes Services and third-party rules in atomic commits",
		Long: `weft is a node agent for Kubernetes that owns nftables. Frontends publish
fragments of ruleset over a Unix socket; one aggregator merges them and is the
only writer to the kernel.`,
		Example: `  weft run --manifests deploy/examples/manifests --hostname-override node-1
  weft apply -f deny.nft
  weft get all
  weft explain --from shop/client --to shop/web:80`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd == root && len(words) > 0 {
			return unknownCommand(root, words[0])
		}
		return cli.Usagef("%s: %w (see %s --help)", cmd.CommandPath(), err, cmd.CommandPath())
	})
	root.AddCommand(daemonCmds()...)
	root.AddCommand(
		newApplyCmd(),
		newConfirmCmd(),
		newPublishCmd(),
		newDeleteCmd(),
		newCheckCmd(),
		newAccessCmd(),
		newPlanCmd(),
		get.New(),
		newWatchCmd(),
		top.New(),
		explain.New(),
		explain.NewTrace(),
		doctor.New(),
		newHistoryCmd(),
		newUndoCmd(),
		newDiffCmd(),
		newCleanupCmd(),
		newHoldCmd(),
		migrate.New(),
		newDemoCmd(),
		newVersionCmd(),
	)
	root.SetHelpCommand(newHelpCmd())
	root.InitDefaultCompletionCmd()
	adaptCompletion(subcommand(root, "completion"))
	root.Args = cobra.ArbitraryArgs
	root.SuggestionsMinimumDistance = 2
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(root, args[0])
	}
	cli.CheckArgs(root)
	return root
}
