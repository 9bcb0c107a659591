package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
)

func newDiffCmd() *cobra.Command {
	var (
		conn   cli.Connection
		commit string
	)
	cmd := cli.Query(&cobra.Command{
		Use:   "diff REVISION [REVISION]",
		Short: "Show how fragments changed between two revisions, or since one",
		Long: `Show how fragments changed after the first revision, up to the second one or until
now, as differences of their nft text. With -c, show what one commit changed.
weft history lists the revisions.

` + cli.RevisionHelp,
		Example: `  weft diff 00123
  weft diff 00123 00124
  weft diff -c 1790000000124`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: conn.CompleteRevisions,
	}, &conn, "text", func(ctx context.Context, c *client.Client, args []string) (*weftv1.CompareRevisionsResponse, error) {
		from, to, err := revisions(ctx, c, args, commit)
		if err != nil {
			return nil, err
		}
		return c.CompareRevisions(ctx, from, to)
	}, printComparison)
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if (commit == "") == (len(args) == 0) {
			return cli.Usagef("weft diff: name one or two revisions, or one with -c (see weft history)")
		}
		return nil
	}
	cmd.Flags().StringVarP(&commit, "commit", "c", "", "show what this revision changed")
	// The only error is an unknown flag.
	_ = cmd.RegisterFlagCompletionFunc("commit", conn.CompleteRevisions)
	return cmd
}

// revisions returns 0 as to for the current content.
func revisions(ctx context.Context, c *client.Client, args []string, commit string) (from, to uint64, err error) {
	if commit != "" {
		to, err = cli.FindRevision(ctx, c, commit)
		return to - 1, to, err
	}
	if from, err = cli.FindRevision(ctx, c, args[0]); err == nil && len(args) == 2 {
		to, err = cli.FindRevision(ctx, c, args[1])
	}
	return from, to, err
}

func printComparison(w io.Writer, c *weftv1.CompareRevisionsResponse) error {
	for _, f := range c.GetFragments() {
		text, err := comparisonText(f)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

func comparisonText(f *weftv1.FragmentComparison) (string, error) {
	const known, absent = weftv1.ContentState_CONTENT_STATE_KNOWN, weftv1.ContentState_CONTENT_STATE_ABSENT
	from, to := f.GetFromState(), f.GetToState()
	var b strings.Builder
	what := "changed"
	switch {
	case from == absent:
		what = "added"
	case to == absent:
		what = "withdrawn"
	}
	fmt.Fprintf(&b, "fragment %s: %s\n", f.GetFragment().Text(), what)
	for _, side := range []struct {
		state weftv1.ContentState
		when  string
	}{{from, "before"}, {to, "after"}} {
		if side.state != known && side.state != absent {
			fmt.Fprintf(&b, "# the content %s is not recorded: it is from before the history, or too large for it\n", side.when)
			what = ""
		}
	}
	if what == "" {
		return b.String(), nil
	}
	before, err := contentText(f.GetFrom())
	if err != nil {
		return "", err
	}
	after, err := contentText(f.GetTo())
	if err != nil {
		return "", err
	}
	// The first three lines name the files.
	parts := strings.SplitN(string(diff.Diff("before", []byte(before), "after", []byte(after))), "\n", 4)
	return b.String() + parts[len(parts)-1], nil
}

// contentText puts the priority, lifetime and expiry into a comment.
func contentText(f *weftv1.Fragment) (string, error) {
	if f == nil {
		return "", nil
	}
	text, err := get.FormatFragment(f)
	if err != nil {
		return "", err
	}
	head := fmt.Sprintf("# priority %d, lifetime %s", f.GetPriority(), cli.Word(f.GetLifetime().String(), "LIFETIME_"))
	if f.GetExpireTime().IsValid() {
		head += ", expires " + f.GetExpireTime().AsTime().Format("2006-01-02 15:04:05 MST")
	}
	return head + "\n" + text, nil
}
