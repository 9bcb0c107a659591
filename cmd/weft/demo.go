package main

import (
	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/demo"
)

func newDemoCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Run the whole system with real traffic in private network namespaces",
		Long: `Run the whole system with real traffic in private network namespaces: two nodes
with pods and servers, weft on each node, and a client outside. Each step says
what was expected and what was observed. The exit code is 0 only if all of it
was right. Needs root, or a kernel that lets users make user namespaces; nothing
outside of the demo's own namespaces is touched.`,
		Example: "  weft demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}
