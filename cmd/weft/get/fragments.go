package get

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// newFragmentsCmd returns a command that shows one fragment if it has an argument, and
// lists fragments otherwise.
func newFragmentsCmd(use, short string, args cobra.PositionalArgs) *cobra.Command {
	var (
		conn   cli.Connection
		output cli.Output
		follow watchFlags
	)
	cmd := &cobra.Command{
		Use:     use,
		Short:   short,
		Args:    args,
		Example: "  weft get fragments\n  weft get fragments -w --output-watch-events",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := follow.check(); err != nil {
				return err
			}
			w, notes := cmd.OutOrStdout(), cmd.ErrOrStderr()
			if follow.watch {
				return watch(cmd.Context(), w, notes, follow.events, func(ctx context.Context) (*weftv1.ListFragmentsResponse, error) {
					return listNamed(ctx, &conn, args)
				}, listRows, poll)
			}
			return conn.Do(cmd.Context(), func(c *client.Client) error {
				if len(args) == 0 {
					return listFragments(cmd, c, &output)
				}
				return getFragment(cmd, c, &output, args[0])
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	formats := []string{"table", "json", "yaml"}
	if strings.Contains(use, "NAME") {
		cmd.ValidArgsFunction = conn.CompleteFragments
		cmd.Example = "  weft get fragment team-a/web\n  weft get fragment deny -o nft"
		formats = append(formats, "nft")
	}
	conn.AddFlags(cmd)
	output.AddFlag(cmd, formats...)
	follow.addFlags(cmd, &output)
	return cmd
}

// listNamed lists all fragments, or those that an argument names.
func listNamed(ctx context.Context, conn *cli.Connection, args []string) (*weftv1.ListFragmentsResponse, error) {
	list, err := asking((*client.Client).List)(ctx, conn)
	if err != nil {
		return nil, err
	}
	if len(args) > 0 {
		publisher, name := cli.SplitName(args[0])
		list.Fragments = slices.DeleteFunc(list.GetFragments(), func(f *weftv1.FragmentStatus) bool {
			return f.GetFragment().GetName() != name || publisher != "" && f.GetFragment().GetPublisher() != publisher
		})
	}
	cli.Escape(list)
	return list, nil
}

func listFragments(cmd *cobra.Command, c *client.Client, output *cli.Output) error {
	if output.Format == "nft" {
		return cli.Usagef("get -o nft: name a fragment")
	}
	list, err := c.List(cmd.Context())
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	return output.Write(w, list, func() error { return listRows(list, time.Now()).print(w, cmd.ErrOrStderr()) })
}

// listRows is fragmentRows of a list.
func listRows(list *weftv1.ListFragmentsResponse, now time.Time) *Rows {
	return fragmentRows(list.GetFragments(), list.GetRevision(), now)
}

func getFragment(cmd *cobra.Command, c *client.Client, output *cli.Output, arg string) error {
	publisher, name := cli.SplitName(arg)
	got, err := c.Get(cmd.Context(), publisher, name)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	// The last revision only makes the number shorter: without it, it is whole.
	list, _ := c.List(cmd.Context())
	last := list.GetRevision()
	return output.Write(w, got, func() error {
		if output.Format == "nft" {
			text, err := FormatFragment(got.GetFragment())
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, text)
			return err
		}
		return fragmentRows([]*weftv1.FragmentStatus{got.GetStatus()}, last, time.Now()).print(w, cmd.ErrOrStderr())
	})
}

// Fragments returns a row for each fragment. Revisions are short if last is the last one, and
// whole if it is 0.
func Fragments(fragments []*weftv1.FragmentStatus, last uint64, now time.Time) *Rows {
	t := newRows("FRAGMENT", "PRIORITY", "LIFETIME", "STATE", "REVISION", "AGE", "EXPIRES", "CHAINS", "RULES", "SETS", "ELEMENTS", "SHADOWED")
	for _, f := range fragments {
		age := "-"
		if f.GetChanged().IsValid() {
			age = now.Sub(f.GetChanged().AsTime()).Round(time.Second).String()
		}
		expires := "-"
		if f.GetExpireTime().IsValid() {
			expires = "in " + f.GetExpireTime().AsTime().Sub(now).Round(time.Second).String()
		}
		state := cli.Word(f.GetState().String(), "STATE_")
		if f.GetRevertTime().IsValid() {
			state = "unconfirmed"
		}
		t.Add(f.GetFragment().Text(), f.GetPriority(), cli.Word(f.GetLifetime().String(), "LIFETIME_"), state, cli.ShortRevision(f.GetRevision(), last), age, expires,
			f.GetChains(), f.GetRules(), f.GetSets(), f.GetElements(), f.GetShadowed())
	}
	return t
}

// fragmentRows returns a row for each fragment; findings and last rejections are notes.
func fragmentRows(fragments []*weftv1.FragmentStatus, last uint64, now time.Time) *Rows {
	t := Fragments(fragments, last, now)
	for _, f := range fragments {
		name := f.GetFragment().Text()
		if at := f.GetRevertTime(); at.IsValid() {
			t.note("%s is taken back in %v unless: weft confirm %s", name, at.AsTime().Sub(now).Round(time.Second), name)
		}
		for _, found := range f.GetFindings() {
			t.note("%s: %s", name, cli.Finding(found))
		}
		if len(f.GetViolations()) > 0 {
			e := client.RejectedError{Fragment: name, Violations: f.GetViolations()}
			t.note("last update: %s", e.Detail())
		}
	}
	return t
}
