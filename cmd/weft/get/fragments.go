package get

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/ruleset"
)

var fragments = kind[*weftv1.ListFragmentsResponse]{listNamed, listRows, polled}

// newFragmentCmd prints one fragment, or a list without an argument.
func newFragmentCmd(use, short string, args cobra.PositionalArgs) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:     use,
		Short:   short,
		Args:    args,
		Example: "  weft get fragment team-a/web\n  weft get fragment deny -o nft",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && f.output.Format == "nft":
				return cli.Usagef("get -o nft: name a fragment")
			case len(args) == 0 || f.watch:
				return fragments.run(cmd, f, args)
			default:
				return f.conn.Do(cmd.Context(), func(c *client.Client) error { return getFragment(cmd, c, &f.output, args[0]) })
			}
		},
		ValidArgsFunction: f.conn.CompleteFragments,
	}
	f.add(cmd, "table", "json", "yaml", "nft")
	return cmd
}

func listNamed(ctx context.Context, conn *cli.Connection, args []string) (*weftv1.ListFragmentsResponse, error) {
	list, err := asking((*client.Client).List, listRows).ask(ctx, conn, nil)
	if err == nil && len(args) > 0 {
		publisher, name := cli.SplitName(args[0])
		list.Fragments = slices.DeleteFunc(list.GetFragments(), func(f *weftv1.FragmentStatus) bool {
			return f.GetFragment().GetName() != name || publisher != "" && f.GetFragment().GetPublisher() != publisher
		})
	}
	return list, err
}

func listRows(list *weftv1.ListFragmentsResponse, now time.Time) *Rows {
	return Fragments(list.GetFragments(), list.GetRevision(), now)
}

func getFragment(cmd *cobra.Command, c *client.Client, output *cli.Output, arg string) error {
	publisher, name := cli.SplitName(arg)
	got, err := c.Get(cmd.Context(), publisher, name)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	// Without the list, revisions have all digits.
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
		return Fragments([]*weftv1.FragmentStatus{got.GetStatus()}, last, time.Now()).print(w, cmd.ErrOrStderr())
	})
}

// FormatFragment prints a fragment as a .nft file.
func FormatFragment(f *weftv1.Fragment) (string, error) {
	tables := make([]nft.Table, len(f.GetTables()))
	for i, m := range f.GetTables() {
		var err error
		if tables[i], err = convert.TableOf(m); err != nil {
			return "", fmt.Errorf("format fragment %s: %w", f.GetName(), err)
		}
	}
	return ruleset.Format(tables), nil
}

// Fragments returns a row for each fragment, with notes. Revisions are short relative to last,
// unless it is 0.
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
