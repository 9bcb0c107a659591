package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

func newConfirmCmd() *cobra.Command {
	var (
		conn   cli.Connection
		revert bool
	)
	cmd := &cobra.Command{
		Use:   "confirm [PUBLISHER/]NAME",
		Short: "Keep a fragment that was applied with --confirm, or take it back now",
		Example: `  weft apply -f firewall.nft --confirm 30s && weft confirm firewall
  weft confirm --revert firewall`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			publisher, name := cli.SplitName(args[0])
			return conn.Do(cmd.Context(), func(c *client.Client) error {
				revision, err := c.Confirm(cmd.Context(), publisher, name, revert)
				if err != nil {
					return err
				}
				what := "confirmed"
				if revert {
					what = "has its earlier content"
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s, revision %d\n", args[0], what, revision)
				return nil
			})
		},
		ValidArgsFunction: conn.CompleteFragments,
	}
	conn.AddFlags(cmd)
	cmd.Flags().BoolVar(&revert, "revert", false, "take the fragment back now, instead of keeping it")
	return cmd
}
