package main

import (
	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/daemon"
)

func newAggregatorCmd() *cobra.Command {
	return daemonCmd(daemon.VerbAggregator, &cobra.Command{
		Short: "The aggregator alone: the socket and the one writer; it needs CAP_NET_ADMIN",
		Long: `Run the aggregator alone: the socket and the one writer. It needs CAP_NET_ADMIN.

If a flag or a configuration file of kube-proxy (--config) says so, it also sets
up connection tracking, as kube-proxy does: the Service frontend, in another
process, has no capability for that. Otherwise it keeps the kernel's values.`,
		Example: `  weft aggregator
  weft aggregator --socket /tmp/weft/weft.sock --state-dir /tmp/weft/state --metrics-bind-address=`,
	})
}
