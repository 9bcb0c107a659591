package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

func newGetOwnerCmd() *cobra.Command {
	cmd := newOwnerCmd(func(args []string) (*weftv1.OwnerRequest, error) {
		req := &weftv1.OwnerRequest{Family: args[0], Table: args[1]}
		if len(args) > 2 {
			req.Chain = args[2]
		}
		if len(args) > 3 {
			handle, err := strconv.ParseUint(args[3], 10, 64)
			if err != nil || handle == 0 {
				return nil, usage(`weft get owner: handle %q: want a number, as "nft -a list" shows it`, args[3])
			}
			req.Handle = handle
		}
		return req, nil
	}, objectRule)
	cmd.Use = "owner FAMILY TABLE [CHAIN [HANDLE]]"
	cmd.Short = "Show which fragment a rule comes from, or who shares a chain or table"
	cmd.Args = cobra.RangeArgs(2, 4)
	return cmd
}

func newGetElementCmd() *cobra.Command {
	cmd := newOwnerCmd(func(args []string) (*weftv1.OwnerRequest, error) {
		return &weftv1.OwnerRequest{Family: args[0], Table: args[1], Set: args[2], Key: strings.Join(args[3:], " ")}, nil
	}, objectSet)
	cmd.Use = "element FAMILY TABLE SET [KEY...]"
	cmd.Short = "Show which fragments an element comes from; the first is in force"
	cmd.Long = `Show which fragments an element of a set or map comes from, or without a key who
shares the set. The first is in force. An element of an interval set is named
as it was added, such as 10.0.0.0/8.`
	cmd.Args = cobra.MinimumNArgs(3)
	return cmd
}

// newOwnerCmd makes a command that asks for the owners of what parse makes of
// its arguments.
func newOwnerCmd(parse func(args []string) (*weftv1.OwnerRequest, error), what object) *cobra.Command {
	var (
		conn   connection
		output outputFormat
	)
	cmd := &cobra.Command{
		RunE: func(cmd *cobra.Command, args []string) error {
			req, err := parse(args)
			if err != nil {
				return err
			}
			return conn.withClient(cmd.Context(), func(c *client.Client) error {
				got, err := c.Owner(cmd.Context(), req)
				if err != nil {
					return err
				}
				w := cmd.OutOrStdout()
				return output.write(w, got, func() error { return printOwners(w, got.GetOwners()) })
			})
		},
		ValidArgsFunction: conn.completeObject(what),
	}
	conn.addFlags(cmd)
	output.addFlag(cmd, "table", "json", "yaml")
	return cmd
}

func printOwners(w io.Writer, owners []*weftv1.OwnedBy) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "FRAGMENT\tPRIORITY\tRULE\tTEXT")
	for _, o := range owners {
		fragment, index := o.GetPublisher()+"/"+o.GetFragment(), "-"
		if o.GetPublisher() == "" {
			fragment = "nobody"
		}
		if o.GetIndex() > 0 {
			index = strconv.FormatUint(uint64(o.GetIndex()), 10)
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\n", fragment, o.GetPriority(), index, o.GetText())
	}
	return tw.Flush()
}
