package get

import (
	"fmt"
	"io"
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
	)
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  args,
		RunE: func(cmd *cobra.Command, args []string) error {
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
		formats = append(formats, "nft")
	}
	conn.AddFlags(cmd)
	output.AddFlag(cmd, formats...)
	return cmd
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
	return output.Write(w, list, func() error { return printFragments(w, list.GetFragments(), time.Now()) })
}

func getFragment(cmd *cobra.Command, c *client.Client, output *cli.Output, arg string) error {
	publisher, name := cli.SplitName(arg)
	got, err := c.Get(cmd.Context(), publisher, name)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	return output.Write(w, got, func() error {
		if output.Format == "nft" {
			text, err := FormatFragment(got.GetFragment())
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, text)
			return err
		}
		return printFragments(w, []*weftv1.FragmentStatus{got.GetStatus()}, time.Now())
	})
}

// Fragments returns a row for each fragment.
func Fragments(fragments []*weftv1.FragmentStatus, now time.Time) *Rows {
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
		t.add(f.GetFragment().Text(), f.GetPriority(), cli.Word(f.GetLifetime().String(), "LIFETIME_"), state, f.GetRevision(), age, expires,
			f.GetChains(), f.GetRules(), f.GetSets(), f.GetElements(), f.GetShadowed())
	}
	return t
}

// printFragments prints a row for each fragment, then their findings and last rejections.
func printFragments(w io.Writer, fragments []*weftv1.FragmentStatus, now time.Time) error {
	if err := Fragments(fragments, now).write(w); err != nil {
		return err
	}
	for _, f := range fragments {
		if at := f.GetRevertTime(); at.IsValid() {
			name := f.GetFragment().Text()
			if _, err := fmt.Fprintf(w, "%s is taken back in %v unless: weft confirm %s\n", name, at.AsTime().Sub(now).Round(time.Second), name); err != nil {
				return err
			}
		}
		for _, found := range f.GetFindings() {
			if _, err := fmt.Fprintf(w, "%s: %s\n", f.GetFragment().Text(), cli.Finding(found)); err != nil {
				return err
			}
		}
		if len(f.GetViolations()) == 0 {
			continue
		}
		e := client.RejectedError{Fragment: f.GetFragment().Text(), Violations: f.GetViolations()}
		if _, err := fmt.Fprintf(w, "last update: %s\n", e.Detail()); err != nil {
			return err
		}
	}
	return nil
}
