package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
)

func newHistoryCmd() *cobra.Command {
	var (
		conn   cli.Connection
		req    weftv1.ListRevisionsRequest
		newest *weftv1.ListRevisionsResponse
		before string
	)
	cmd := cli.Query(&cobra.Command{
		Use:   "history",
		Short: "Show the recorded commits, the newest first",
		Long: `Show the recorded commits, the newest first: which fragments each one added,
changed or withdrew, what that changed in the kernel, the size of the transaction in
bytes, and how long it took to build and to commit it. The history survives restarts.
weft diff shows the content of what changed.

` + cli.RevisionHelp,
		Example: `  weft history
  weft history --of team-a --limit 5 -o json`,
		Args: cobra.NoArgs,
	}, &conn, "table", func(ctx context.Context, c *client.Client, _ []string) (list *weftv1.ListRevisionsResponse, err error) {
		if before != "" {
			if req.Before, err = cli.FindRevision(ctx, c, before); err != nil {
				return nil, err
			}
		}
		if list, err = c.ListRevisions(ctx, &req); err == nil {
			newest, err = c.ListRevisions(ctx, &weftv1.ListRevisionsRequest{Limit: 1})
		}
		return list, err
	}, func(w io.Writer, list *weftv1.ListRevisionsResponse) error {
		var last uint64
		for _, r := range newest.GetRevisions() {
			last = r.GetRevision()
		}
		return get.Revisions(list.GetRevisions(), last).Write(w)
	})
	cmd.Flags().StringVar(&req.Publisher, "of", "", "show only commits that changed fragments of this publisher")
	cmd.Flags().Uint32VarP(&req.Limit, "limit", "n", 20, "show at most so many commits; 0 shows all")
	cmd.Flags().StringVar(&before, "before", "", "show only commits before this revision")
	// Errors are unknown flags.
	_ = cmd.RegisterFlagCompletionFunc("of", conn.CompletePublishers)
	_ = cmd.RegisterFlagCompletionFunc("before", conn.CompleteRevisions)
	return cmd
}
