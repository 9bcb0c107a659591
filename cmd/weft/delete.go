package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

func newDeleteCmd() *cobra.Command {
	var conn cli.Connection
	cmd := &cobra.Command{
		Use:   "delete [PUBLISHER/]NAME...",
		Short: "Withdraw fragments and wait until that is committed",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return conn.Do(cmd.Context(), func(c *client.Client) error {
				for _, arg := range args {
					publisher, name := cli.SplitName(arg)
					revision, err := c.Delete(cmd.Context(), publisher, name)
					if err != nil {
						return err
					}
					fmt.Fprintf(cmd.OutOrStdout(), "%s deleted, revision %d\n", arg, revision)
				}
				return nil
			})
		},
		ValidArgsFunction: conn.CompleteFragments,
	}
	conn.AddFlags(cmd)
	return cmd
}
