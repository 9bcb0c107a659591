package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

func newUndoCmd() *cobra.Command {
	var (
		conn  cli.Connection
		force bool
	)
	cmd := &cobra.Command{
		Use:   "undo REVISION",
		Short: "Give the fragments that a commit changed the content of before it",
		Long: `Give the fragments that a commit changed the content that they had before it. That is a
new update of each fragment, with the rights that its publisher has now: the history goes on,
and weft undo of the new revision takes it back. weft history lists the revisions, and
weft diff -c REVISION shows what is undone.

Nothing is changed if a fragment was changed again since, if its publisher is connected and
would send its own content again, if the earlier content is not recorded, or if
weft would refuse it. --force disregards the first two.

` + cli.RevisionHelp,
		Example: `  weft undo 00124
  weft undo --force 1790000000124`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			u := undo{conn: conn, force: force, out: cmd.OutOrStdout()}
			return conn.Do(cmd.Context(), func(c *client.Client) (err error) {
				if u.revision, err = cli.FindRevision(cmd.Context(), c, args[0]); err != nil {
					return err
				}
				return u.run(cmd.Context(), c)
			})
		},
		ValidArgsFunction: conn.CompleteRevisions,
	}
	conn.AddFlags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "also undo what was changed again since, and what a connected publisher will send again")
	return cmd
}

type undo struct {
	conn     cli.Connection
	revision uint64
	force    bool
	out      io.Writer
}

// run makes all checks before the first change.
func (u *undo) run(ctx context.Context, c *client.Client) error {
	commit, err := c.CompareRevisions(ctx, u.revision-1, u.revision)
	if err != nil {
		return err
	}
	fragments := commit.GetFragments()
	if len(fragments) == 0 {
		return fmt.Errorf("undo %d: it changed no content of a fragment: weft history lists the revisions", u.revision)
	}
	if err := u.known(fragments); err != nil {
		return err
	}
	if !u.force {
		if err := u.changedSince(ctx, c, fragments); err != nil {
			return err
		}
		if err := u.connected(ctx, c, fragments); err != nil {
			return err
		}
	}
	// The fragments are sorted by publisher.
	publishers := slices.Compact(cli.Map(fragments, func(f *weftv1.FragmentComparison) string { return f.GetFragment().GetPublisher() }))
	for _, step := range []func(context.Context, *client.Client, []*weftv1.FragmentComparison) error{u.plan, u.apply} {
		for _, p := range publishers {
			as := u.conn
			as.Publisher = p
			own := slices.DeleteFunc(slices.Clone(fragments), func(f *weftv1.FragmentComparison) bool { return f.GetFragment().GetPublisher() != p })
			if err := as.Do(ctx, func(c *client.Client) error { return step(ctx, c, own) }); err != nil {
				return fmt.Errorf("undo %d: %w", u.revision, err)
			}
		}
	}
	return nil
}

// known returns an error if earlier content is unrecorded or expired.
func (u *undo) known(fragments []*weftv1.FragmentComparison) error {
	now := time.Now()
	for _, f := range fragments {
		name := f.GetFragment().Text()
		switch f.GetFromState() {
		case weftv1.ContentState_CONTENT_STATE_KNOWN, weftv1.ContentState_CONTENT_STATE_ABSENT:
		default:
			return fmt.Errorf("undo %d: the earlier content of fragment %s is not recorded: it is from before the history, or too large for it", u.revision, name)
		}
		if at := f.GetFrom().GetExpireTime(); at.IsValid() && !at.AsTime().After(now) {
			return fmt.Errorf("undo %d: the earlier content of fragment %s expired at %s", u.revision, name, at.AsTime().Format(time.RFC3339))
		}
	}
	return nil
}

func (u *undo) changedSince(ctx context.Context, c *client.Client, fragments []*weftv1.FragmentComparison) error {
	list, err := c.ListRevisions(ctx, &weftv1.ListRevisionsRequest{})
	if err != nil {
		return err
	}
	names := cli.Map(fragments, func(f *weftv1.FragmentComparison) string { return f.GetFragment().Text() })
	for _, r := range list.GetRevisions() { // the newest first
		if r.GetRevision() <= u.revision {
			return nil
		}
		for _, changed := range r.GetFragments() {
			if name := changed.GetFragment().Text(); slices.Contains(names, name) {
				return fmt.Errorf("undo %d: revision %d changed fragment %s again: undo that first, or --force", u.revision, r.GetRevision(), name)
			}
		}
	}
	return nil
}

// connected returns an error if a publisher has a session.
func (u *undo) connected(ctx context.Context, c *client.Client, fragments []*weftv1.FragmentComparison) error {
	list, err := c.ListPublishers(ctx)
	if err != nil {
		return err
	}
	for _, p := range list.GetPublishers() {
		for _, f := range fragments {
			if len(p.GetSessions()) > 0 && f.GetFragment().GetPublisher() == p.GetName() {
				return fmt.Errorf("undo %d: publisher %s of fragment %s is connected (process %d) and would send its own content again: stop it first, or --force",
					u.revision, p.GetName(), f.GetFragment().Text(), p.GetSessions()[0].GetPid())
			}
		}
	}
	return nil
}

// plan returns an error if the earlier content would be refused now.
func (u *undo) plan(ctx context.Context, c *client.Client, fragments []*weftv1.FragmentComparison) error {
	req := &weftv1.PlanRequest{}
	for _, f := range fragments {
		if f.GetFrom() == nil {
			req.Withdraw = append(req.Withdraw, f.GetFragment())
		} else {
			req.Fragments = append(req.Fragments, f.GetFrom())
		}
	}
	plan, err := c.Plan(ctx, req)
	if err != nil {
		return err
	}
	var why []string
	for _, r := range plan.GetRejections() {
		for _, v := range r.GetViolations() {
			why = append(why, fmt.Sprintf("the earlier content of fragment %s would be refused: %s", r.GetFragment().Text(), v.GetMessage()))
		}
	}
	if len(why) > 0 {
		return errors.New(strings.Join(why, "; "))
	}
	return nil
}

func (u *undo) apply(ctx context.Context, c *client.Client, fragments []*weftv1.FragmentComparison) error {
	for _, f := range fragments {
		name := f.GetFragment()
		what, act := "has its earlier content", func() (uint64, error) { return c.Apply(ctx, f.GetFrom()) }
		if f.GetFrom() == nil {
			what, act = "withdrawn", func() (uint64, error) { return c.Delete(ctx, name.GetPublisher(), name.GetName()) }
		}
		revision, err := act()
		if err != nil {
			return err
		}
		fmt.Fprintf(u.out, "%s %s, revision %d\n", name.Text(), what, revision)
	}
	return nil
}
