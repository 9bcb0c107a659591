package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/nft/kernel"
)

func newCleanupCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove every table that weft made in this network namespace",
		Long: `Remove every table that weft made in this network namespace, in one
transaction. Tables of others are not touched. A running weft owns its tables:
stop it first.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := kernel.Open(kernel.Config{})
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			tables, err := conn.Adopt()
			if err != nil {
				return err
			}
			if len(tables) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to remove")
				return nil
			}
			ops := make([]kernel.Op, len(tables))
			for i, t := range tables {
				ops[i] = kernel.DeleteTable{Table: t.ID}
			}
			if _, err := conn.Commit(ops); err != nil {
				return fmt.Errorf("remove tables: %w", err)
			}
			for _, t := range tables {
				fmt.Fprintf(cmd.OutOrStdout(), "removed table %s\n", t.ID)
			}
			return nil
		},
	}
}
