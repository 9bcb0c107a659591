package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

func newHistoryCmd() *cobra.Command {
	var (
		conn   cli.Connection
		output cli.Output
		req    weftv1.ListRevisionsRequest
		before string
	)
	cmd := &cobra.Command{
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			return conn.Do(cmd.Context(), func(c *client.Client) (err error) {
				if before != "" {
					if req.Before, err = cli.FindRevision(cmd.Context(), c, before); err != nil {
						return err
					}
				}
				list, err := c.ListRevisions(cmd.Context(), &req)
				if err != nil {
					return err
				}
				newest, err := c.ListRevisions(cmd.Context(), &weftv1.ListRevisionsRequest{Limit: 1})
				if err != nil {
					return err
				}
				w := cmd.OutOrStdout()
				return output.Write(w, list, func() error { return printHistory(w, list, newest) })
			})
		},
	}
	conn.AddFlags(cmd)
	output.AddFlag(cmd, "table", "json", "yaml")
	cmd.Flags().StringVar(&req.Publisher, "of", "", "show only commits that changed fragments of this publisher")
	cmd.Flags().Uint32VarP(&req.Limit, "limit", "n", 20, "show at most so many commits; 0 shows all")
	cmd.Flags().StringVar(&before, "before", "", "show only commits before this revision")
	// The only errors are unknown flags.
	_ = cmd.RegisterFlagCompletionFunc("of", conn.CompletePublishers)
	_ = cmd.RegisterFlagCompletionFunc("before", conn.CompleteRevisions)
	return cmd
}

// printHistory prints a row for each entry. The first entry of newest has the last revision.
func printHistory(w io.Writer, list, newest *weftv1.ListRevisionsResponse) error {
	var last uint64
	for _, r := range newest.GetRevisions() {
		last = r.GetRevision()
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "REVISION\tTIME\tFRAGMENTS\tSIZE\tDURATION\tCHANGES")
	for _, r := range list.GetRevisions() {
		names := make([]string, 0, len(r.GetFragments()))
		for _, f := range r.GetFragments() {
			names = append(names, changeSign(f.GetKind())+f.GetFragment().Text())
		}
		changes := cli.Counts(r.GetChanges())
		if n := r.GetLost(); n > 0 {
			changes += fmt.Sprintf(" (and %d commits before it that could not be recorded)", n)
		}
		took := (r.GetBuild().AsDuration() + r.GetKernel().AsDuration()).Round(10 * time.Microsecond)
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d\t%v\t%s\n", cli.ShortRevision(r.GetRevision(), last), r.GetTime().AsTime().Local().Format("2006-01-02 15:04:05.000"),
			cli.Some(names), r.GetSize(), took, changes)
	}
	return tw.Flush()
}

// changeSign returns the sign before the name of a fragment.
func changeSign(kind weftv1.FragmentChange_Kind) string {
	switch kind {
	case weftv1.FragmentChange_KIND_ADDED:
		return "+"
	case weftv1.FragmentChange_KIND_WITHDRAWN, weftv1.FragmentChange_KIND_LOST:
		return "-"
	default:
		return ""
	}
}
