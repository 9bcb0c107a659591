package get

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// New returns the verb.
func New() *cobra.Command {
	cmd := newFragmentsCmd("get [[PUBLISHER/]NAME]", "Show fragments, tables, publishers, Services, network policies, and who owns a rule or element", cobra.MaximumNArgs(1))
	cmd.Long = `Show the fragments, or the content of one. The subcommands show the rest; a
fragment with the name of one of them is shown by "weft get fragment NAME".`
	cmd.Example = `  weft get
  weft get deny -o nft
  weft get table ip weft
  weft get fragments -w
  weft get all
  weft get owner ip weft services
  weft get element ip weft services 10.96.0.10 . tcp . 80
  weft get services
  weft get endpoints kube-system/kube-dns
  weft get policies
  weft get status
  weft get pods
  weft get drops -f`
	cmd.AddCommand(
		newFragmentsCmd("fragments", "Show the fragments: owner, state, revision, age, size, and the last error", cobra.NoArgs),
		newFragmentsCmd("fragment [PUBLISHER/]NAME", "Show the state and content of one fragment", cobra.ExactArgs(1)),
		newTablesCmd(), newTableCmd(), newPublishersCmd(), newOwnerCmd(), newElementCmd(),
		newStatusCmd(), newServicesCmd(), newEndpointsCmd(), newPoliciesCmd(), newPodsCmd(), newDropsCmd(), newAllCmd(),
	)
	for _, sub := range cmd.Commands() {
		cli.CheckArgs(sub)
	}
	return cmd
}

// query completes a subcommand that asks the aggregator one question and prints the
// answer in the format text, or as JSON or YAML.
func query[T any](cmd *cobra.Command, conn *cli.Connection, text string,
	ask func(ctx context.Context, c *client.Client, args []string) (T, error), print func(w io.Writer, answer T) error) *cobra.Command {
	return show(cmd, conn, text, func(ctx context.Context, args []string) (answer T, err error) {
		err = conn.Do(ctx, func(c *client.Client) error {
			answer, err = ask(ctx, c, args)
			return err
		})
		return answer, err
	}, print)
}

// asking asks the aggregator.
func asking[T any](ask func(*client.Client, context.Context) (T, error)) func(context.Context, *cli.Connection) (T, error) {
	return func(ctx context.Context, conn *cli.Connection) (answer T, err error) {
		err = conn.Do(ctx, func(c *client.Client) error {
			answer, err = ask(c, ctx)
			return err
		})
		return answer, err
	}
}

// list returns a subcommand without arguments.
func list[T any](use, short string, ask func(*client.Client, context.Context) (T, error), rows func(answer T, now time.Time) *Rows) *cobra.Command {
	var conn cli.Connection
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		Example: "  weft get " + use + "\n  weft get " + use + " -w",
	}
	return tabulate(cmd, &conn, func(ctx context.Context, _ []string) (T, error) { return asking(ask)(ctx, &conn) }, rows, poll)
}

// tabulate completes a subcommand that prints the answer of ask as a table, JSON or YAML, and
// with --watch how the table changes.
func tabulate[T any](cmd *cobra.Command, conn *cli.Connection,
	ask func(ctx context.Context, args []string) (T, error), rows func(answer T, now time.Time) *Rows, changes changes) *cobra.Command {
	var (
		output cli.Output
		follow watchFlags
	)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := follow.check(); err != nil {
			return err
		}
		ctx, w, notes := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
		if follow.watch {
			return watch(ctx, w, notes, follow.events, func(ctx context.Context) (T, error) {
				answer, err := ask(ctx, args)
				cli.EscapeAny(answer)
				return answer, err
			}, rows, changes)
		}
		answer, err := ask(ctx, args)
		if err != nil {
			return err
		}
		return output.Write(w, answer, func() error { return rows(answer, time.Now()).print(w, notes) })
	}
	conn.AddFlags(cmd)
	output.AddFlag(cmd, "table", "json", "yaml")
	follow.addFlags(cmd, &output)
	return cmd
}

// show completes a subcommand that prints the answer of ask in the format text, or as JSON
// or YAML.
func show[T any](cmd *cobra.Command, conn *cli.Connection, text string,
	ask func(ctx context.Context, args []string) (T, error), print func(w io.Writer, answer T) error) *cobra.Command {
	var output cli.Output
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		answer, err := ask(cmd.Context(), args)
		if err != nil {
			return err
		}
		w := cmd.OutOrStdout()
		return output.Write(w, answer, func() error { return print(w, answer) })
	}
	conn.AddFlags(cmd)
	output.AddFlag(cmd, text, "json", "yaml")
	return cmd
}
