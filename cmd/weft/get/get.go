package get

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// New returns the command "weft get".
func New() *cobra.Command {
	cmd := newFragmentCmd("get [[PUBLISHER/]NAME]", "Show fragments, tables, publishers, Services, network policies, and who owns a rule or element", cobra.MaximumNArgs(1))
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
		fragments.list("fragments", "Show the fragments: owner, state, revision, age, size, and the last error", "-w --output-watch-events"),
		newFragmentCmd("fragment [PUBLISHER/]NAME", "Show the state and content of one fragment", cobra.ExactArgs(1)),
		tables.list("tables", "Show the tables that weft has in the kernel, and the fragments in each", "-w"),
		newTableCmd(),
		publishers.list("publishers", "Show the publishers that have fragments or are connected, and the last rejection of each", "-w"),
		newOwnerCmd(), newElementCmd(), newStatusCmd(), newServicesCmd(), newEndpointsCmd(), newPoliciesCmd(), newPodsCmd(), newDropsCmd(), newAllCmd(),
	)
	return cmd
}

type kind[T any] struct {
	// all objects, or the objects named by args
	ask     func(ctx context.Context, conn *cli.Connection, args []string) (T, error)
	rows    func(objects T, now time.Time) *Rows
	changes func(*cli.Connection) changes
}

func asking[T any](ask func(*client.Client, context.Context) (T, error), rows func(T, time.Time) *Rows) kind[T] {
	return kind[T]{func(ctx context.Context, conn *cli.Connection, _ []string) (answer T, err error) {
		err = conn.Do(ctx, func(c *client.Client) error {
			answer, err = ask(c, ctx)
			return err
		})
		return answer, err
	}, rows, polled}
}

// list is a command without arguments. flags are for its second example.
func (k kind[T]) list(use, short, flags string) *cobra.Command {
	return k.command(&cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		Example: "  weft get " + use + "\n  weft get " + use + " " + flags,
	}, nil)
}

// command prints changes with --watch; complete is nil without an argument.
func (k kind[T]) command(cmd *cobra.Command, complete func(*cli.Connection) cobra.CompletionFunc) *cobra.Command {
	f := &flags{}
	f.add(cmd, "table", "json", "yaml")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return k.run(cmd, f, args) }
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if complete == nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(&f.conn)(cmd, args, word)
	}
	return cmd
}

func (k kind[T]) run(cmd *cobra.Command, f *flags, args []string) error {
	ctx, w, notes := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	if f.watch {
		return watch(ctx, w, notes, f.events, func(ctx context.Context) (T, error) {
			answer, err := k.ask(ctx, &f.conn, args)
			cli.Escape(answer)
			return answer, err
		}, k.rows, k.changes(&f.conn))
	}
	answer, err := k.ask(ctx, &f.conn, args)
	if err != nil {
		return err
	}
	return f.output.Write(w, answer, func() error { return k.rows(answer, time.Now()).print(w, notes) })
}

func (k kind[T]) complete(conn *cli.Connection) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return cli.Complete(cmd, func(ctx context.Context) (names []string, _ error) {
			_, rows, err := k.read(ctx, conn)
			if err != nil {
				return nil, err
			}
			return rows.names(), nil
		})
	}
}

// read returns all objects, escaped, and their table.
func (k kind[T]) read(ctx context.Context, conn *cli.Connection) (any, *Rows, error) {
	answer, err := k.ask(ctx, conn, nil)
	if err != nil {
		return nil, nil, err
	}
	cli.Escape(answer)
	return answer, k.rows(answer, time.Now()), nil
}
