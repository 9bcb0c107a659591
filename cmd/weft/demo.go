package main

import (
	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/demo"
)

func newDemoCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the whole system with real traffic in private network namespaces",
		Long: `Run the whole system with real traffic in private network namespaces: two nodes
with pods and servers, weft on each node, and a client outside. Each step says
what was expected and what was observed. The exit code is 0 only if all of it
was right. Needs root, or a kernel that lets users make user namespaces; nothing
outside of the demo's own namespaces is touched.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), demo.Config{
				Args:   []string{"demo"},
				Stdout: cmd.OutOrStdout(),
				Stderr: cmd.ErrOrStderr(),
			})
		},
	}
	cmd.AddCommand(newDemoServeCmd())
	return cmd
}

// newDemoServeCmd is the server in the demo's pods.
func newDemoServeCmd() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:    "serve --name NAME",
		Short:  "Answer over TCP and UDP with a name, as the demo's pods do",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Serve(cmd.Context(), name, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "what to answer")
	return cmd
}
