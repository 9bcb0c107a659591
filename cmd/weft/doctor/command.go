package doctor

import (
	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// New returns the command.
func New() *cobra.Command {
	var (
		cfg    Config
		output cli.Output
		bundle string
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine this node, and say what is wrong, what it means and what to do",
		Long: `Examine this node. The first lines are the conditions of weft's processes, as "weft get
status" has them: one that is not ok is an error. Then doctor looks at the host: the kernel
and its modules, forwarding, routes, connection tracking, the reverse path filter, bridges, ports;
weft's socket, HTTP servers, tables and state directory; rules of kube-proxy and of other
programs; whether the Services of the API are in the kernel; and whether their endpoints
answer.

It changes nothing. The checks take at most two seconds together, and a bundle at most
thirty more. It opens a TCP connection to at
most 128 endpoints, and closes it. The exit code is 1 if there is an error among the
findings.`,
		Example: `  weft doctor
  weft doctor -o json
  weft doctor --bundle weft.tar.gz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := Run(cmd.Context(), cfg)
			if bundle != "" {
				if err := writeBundle(cmd.Context(), bundle, cfg, report); err != nil {
					return err
				}
			}
			err := output.Write(cmd.OutOrStdout(), report, func() error { return printReport(cmd.OutOrStdout(), report) })
			if err == nil && report.Failed() {
				err = cli.ExitCode(1)
			}
			return err
		},
	}
	set := cmd.Flags()
	set.StringVar(&cfg.Socket, "socket", client.DefaultSocket, "path of weft's Unix socket")
	set.StringVar(&cfg.Publisher, "publisher", "", `name of the publisher to act as (default "uid-N")`)
	set.StringVar(&cfg.Health, "healthz-address", "127.0.0.1:10256", "address of weft's server for health checks")
	set.StringVar(&cfg.Metrics, "metrics-address", "127.0.0.1:10249", "address of weft's server for metrics")
	set.StringVar(&cfg.StateDir, "state-dir", "/var/lib/weft", "state directory of weft")
	set.StringVar(&bundle, "bundle", "", "write what a support case needs to this file (tar.gz)")
	output.AddFlag(cmd, "text", "json", "yaml")
	return cmd
}
