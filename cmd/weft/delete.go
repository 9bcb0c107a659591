package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/nftfile"
)

type deletion struct {
	conn    cli.Connection
	files   nftfile.Selection
	missing bool
	out     io.Writer
}

func newDeleteCmd() *cobra.Command {
	d := deletion{}
	cmd := &cobra.Command{
		Use:   "delete [PUBLISHER/]NAME... | -f FILE|DIR...",
		Short: "Withdraw fragments and wait until that is committed",
		Long: `Withdraw fragments, by their names or by the files that they were applied from, and wait
until that is committed. Of files, the last one comes first, because a fragment can need
those that were applied before it. weft delete goes on after a fragment
that is refused, names all that were not withdrawn at the end, and fails then.`,
		Example: `  weft delete deny
  weft delete team-a/web team-b/web
  weft delete -f fragments/`,
		RunE: func(cmd *cobra.Command, args []string) error {
			d.out = cmd.OutOrStdout()
			return d.run(cmd.Context(), cmd.ErrOrStderr(), args)
		},
		ValidArgsFunction: d.conn.CompleteFragments,
	}
	d.conn.AddFlags(cmd)
	d.files.AddFlags(cmd)
	cmd.Flags().BoolVar(&d.missing, "ignore-not-found", false, "a fragment that does not exist is not an error")
	return cmd
}

func (d *deletion) run(ctx context.Context, stderr io.Writer, args []string) error {
	if len(args)+len(d.files.Files) == 0 {
		return cli.Usagef("weft delete: name fragments, or files with -f (see weft delete --help)")
	}
	sources, err := d.files.Sources("weft delete")
	if err != nil {
		return err
	}
	slices.Reverse(sources)
	names := slices.Concat(args, cli.Map(sources, func(from nftfile.Source) string { return from.Name }))
	return d.conn.Do(ctx, func(c *client.Client) error {
		if len(names) == 1 {
			return d.delete(ctx, c, names[0])
		}
		return each(ctx, stderr, "deleted", names, func(i int) error { return d.delete(ctx, c, names[i]) })
	})
}

func (d *deletion) delete(ctx context.Context, c *client.Client, arg string) error {
	publisher, name := cli.SplitName(arg)
	_, err := c.Delete(ctx, publisher, name)
	if d.missing && errors.Is(err, client.ErrNotFound) {
		return nil
	}
	if err == nil {
		fmt.Fprintf(d.out, "fragment/%s deleted\n", arg)
	}
	return err
}
