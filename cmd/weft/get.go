package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

func newGetCmd() *cobra.Command {
	cmd := newGetFragmentsCmd("get [[PUBLISHER/]NAME]")
	cmd.Short = "Show fragments, tables, publishers, Services, and whose a rule or element is"
	cmd.Long = `Show the fragments, or the content of one. The subcommands show the rest; a
fragment with the name of one of them is shown by "weft get fragment NAME".`
	cmd.Example = `  weft get
  weft get deny -o nft
  weft get table ip weft
  weft get owner ip weft input 7
  weft get element ip weft services 10.96.0.1 . tcp . 80
  weft get services
  weft get endpoints kube-system/kube-dns`
	cmd.AddCommand(
		newGetFragmentsCmd("fragments"), newGetFragmentCmd(),
		newGetTablesCmd(), newGetTableCmd(), newGetPublishersCmd(), newGetOwnerCmd(), newGetElementCmd(),
		newGetServicesCmd(), newGetEndpointsCmd(),
	)
	for _, sub := range cmd.Commands() {
		checkArgs(sub)
	}
	return cmd
}

// newGetFragmentsCmd lists fragments, or as "get NAME" shows one.
func newGetFragmentsCmd(use string) *cobra.Command {
	var (
		conn   connection
		output outputFormat
	)
	cmd := &cobra.Command{
		Use:   use,
		Short: "Show the fragments: whose, state, revision, age, size, and the last error",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return conn.withClient(cmd.Context(), func(c *client.Client) error {
				if len(args) == 0 {
					return listFragments(cmd, c, &output)
				}
				return getFragment(cmd, c, &output, args[0])
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	formats := []string{"table", "json", "yaml"}
	if use != "fragments" {
		cmd.Args, cmd.ValidArgsFunction = cobra.MaximumNArgs(1), conn.completeNames
		formats = append(formats, "nft")
	}
	conn.addFlags(cmd)
	output.addFlag(cmd, formats...)
	return cmd
}

func newGetFragmentCmd() *cobra.Command {
	var (
		conn   connection
		output outputFormat
	)
	cmd := &cobra.Command{
		Use:   "fragment [PUBLISHER/]NAME",
		Short: "Show the state and content of one fragment",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return conn.withClient(cmd.Context(), func(c *client.Client) error {
				return getFragment(cmd, c, &output, args[0])
			})
		},
		ValidArgsFunction: conn.completeNames,
	}
	conn.addFlags(cmd)
	output.addFlag(cmd, "table", "json", "yaml", "nft")
	return cmd
}

func listFragments(cmd *cobra.Command, c *client.Client, output *outputFormat) error {
	if output.value == "nft" {
		return usage("get -o nft: name a fragment")
	}
	list, err := c.List(cmd.Context())
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	return output.write(w, list, func() error { return printFragments(w, list.GetFragments(), time.Now()) })
}

func getFragment(cmd *cobra.Command, c *client.Client, output *outputFormat, arg string) error {
	publisher, name := splitName(arg)
	got, err := c.Get(cmd.Context(), publisher, name)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	return output.write(w, got, func() error {
		if output.value == "nft" {
			text, err := formatFragment(got.GetFragment())
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, text)
			return err
		}
		return printFragments(w, []*weftv1.FragmentStatus{got.GetStatus()}, time.Now())
	})
}

// printFragments writes a table with a row for each fragment, and what is wrong
// with it below.
func printFragments(w io.Writer, fragments []*weftv1.FragmentStatus, now time.Time) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "FRAGMENT\tPRIORITY\tLIFETIME\tSTATE\tREVISION\tAGE\tCHAINS\tRULES\tSETS\tELEMENTS\tSHADOWED")
	for _, f := range fragments {
		age := "-"
		if f.GetChanged().IsValid() {
			age = now.Sub(f.GetChanged().AsTime()).Round(time.Second).String()
		}
		fmt.Fprintf(tw, "%s/%s\t%d\t%s\t%s\t%d\t%s\t%d\t%d\t%d\t%d\t%d\n", f.GetPublisher(), f.GetName(), f.GetPriority(),
			word(f.GetLifetime().String(), "LIFETIME_"), word(f.GetState().String(), "STATE_"), f.GetRevision(), age,
			f.GetChains(), f.GetRules(), f.GetSets(), f.GetElements(), f.GetShadowed())
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, f := range fragments {
		if len(f.GetViolations()) == 0 {
			continue
		}
		e := client.RejectedError{Fragment: f.GetPublisher() + "/" + f.GetName(), Violations: f.GetViolations()}
		if _, err := fmt.Fprintf(w, "last update: %s\n", e.Detail()); err != nil {
			return err
		}
	}
	return nil
}

// word turns an enum's name into what a table shows.
func word(name, prefix string) string { return strings.ToLower(strings.TrimPrefix(name, prefix)) }
