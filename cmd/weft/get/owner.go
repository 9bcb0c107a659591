package get

import (
	"cmp"
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

func newOwnerCmd() *cobra.Command {
	return ownerQuery(&cobra.Command{
		Use:   "owner FAMILY TABLE [CHAIN [HANDLE]]",
		Short: "Show which fragment a rule comes from, or which fragments share a chain or table",
		Example: `  weft get owner ip weft
  weft get owner ip weft services
  weft get owner ip weft services 7`,
		Args: cobra.RangeArgs(2, 4),
	}, cli.ObjectRule, func(args []string) (*weftv1.OwnerRequest, error) {
		n := &weftv1.ObjectName{Kind: "table", Family: args[0], Table: args[1]}
		if len(args) > 2 {
			n.Kind, n.Name = "chain", args[2]
		}
		if len(args) > 3 {
			handle, err := strconv.ParseUint(args[3], 10, 64)
			if err != nil || handle == 0 {
				return nil, cli.Usagef(`weft get owner: handle %q: want a number, as "nft -a list" shows it`, args[3])
			}
			n.Kind, n.Handle = "rule", handle
		}
		return &weftv1.OwnerRequest{Object: n}, nil
	})
}

func newElementCmd() *cobra.Command {
	return ownerQuery(&cobra.Command{
		Use:   "element FAMILY TABLE SET [KEY...]",
		Short: "Show which fragments an element comes from; the first is in force",
		Long: `Show which fragments an element of a set or map comes from, or without a key
which fragments share the set. The first is in force. An element of an interval
set is named as it was added, such as 10.0.0.0/8.`,
		Example: `  weft get element ip weft services
  weft get element ip weft services 10.96.0.10 . tcp . 80`,
		Args: cobra.MinimumNArgs(3),
	}, cli.ObjectElement, func(args []string) (*weftv1.OwnerRequest, error) {
		n := &weftv1.ObjectName{Kind: "set", Family: args[0], Table: args[1], Name: args[2]}
		if len(args) > 3 {
			n.Kind, n.Key = "element", strings.Join(args[3:], " ")
		}
		return &weftv1.OwnerRequest{Object: n}, nil
	})
}

func ownerQuery(cmd *cobra.Command, what cli.Object, parse func(args []string) (*weftv1.OwnerRequest, error)) *cobra.Command {
	var conn cli.Connection
	cmd.ValidArgsFunction = conn.CompleteObject(what)
	return cli.Query(cmd, &conn, "table", func(ctx context.Context, c *client.Client, args []string) (*weftv1.OwnerResponse, error) {
		req, err := parse(args)
		if err != nil {
			return nil, err
		}
		return c.Owner(ctx, req)
	}, printOwners)
}

// unowned is the fragment of an object from before a restart.
const unowned = "unknown"

func printOwners(w io.Writer, answer *weftv1.OwnerResponse) error {
	t := newRows("FRAGMENT", "PRIORITY", "RULE", "TEXT")
	for _, o := range answer.GetOwners() {
		index := "-"
		if o.GetIndex() > 0 {
			index = strconv.FormatUint(uint64(o.GetIndex()), 10)
		}
		t.Add(cmp.Or(o.GetFragment().Text(), unowned), o.GetPriority(), index, o.GetText())
	}
	return t.Write(w)
}
