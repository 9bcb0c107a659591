package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/client"
)

func newDeleteCmd() *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "delete [PUBLISHER/]NAME...",
		Short: "Withdraw fragments and wait until that is committed",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return conn.withClient(cmd.Context(), func(c *client.Client) error {
				for _, arg := range args {
					publisher, name := splitName(arg)
					revision, err := c.Delete(cmd.Context(), publisher, name)
					if err != nil {
						return err
					}
					fmt.Fprintf(cmd.OutOrStdout(), "%s deleted, revision %d\n", arg, revision)
				}
				return nil
			})
		},
		ValidArgsFunction: conn.completeNames,
	}
	conn.addFlags(cmd)
	return cmd
}

// splitName splits "publisher/name"; without a slash the publisher is empty,
// which means the caller.
func splitName(arg string) (publisher, name string) {
	if p, n, ok := strings.Cut(arg, "/"); ok {
		return p, n
	}
	return "", arg
}

// completeNames offers the fragments that the aggregator has.
func (c *connection) completeNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	err := c.withClient(cmd.Context(), func(cl *client.Client) error {
		list, err := cl.List(cmd.Context())
		for _, f := range list.GetFragments() {
			names = append(names, f.GetPublisher()+"/"+f.GetName())
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
