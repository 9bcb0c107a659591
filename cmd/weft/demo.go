package main

import (
	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/deploy/demo"
)

func newDemoCmd() *cobra.Command {
	verbose := false
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the whole system with real traffic in private network namespaces",
		Long: `Run the whole system with real traffic in private network namespaces: two nodes
with pods and servers, weft on each node, and a client outside. Each step is a
line that says what was observed, and the verdict is the last one; a step that
fails also says what was expected, and what weft logged. The exit code is 0 only
if all of it was right. Needs root, or a kernel that lets users make user namespaces; nothing
outside of the demo's own namespaces is touched.`,
		Example: "  weft demo\n  weft demo -v",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), verbose)
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also print what was expected of each step, and at the end the rules of node-1 as nft lists them")
	return cmd
}
