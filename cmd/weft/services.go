package main

import (
	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/daemon"
)

func newServicesCmd() *cobra.Command {
	return daemonCmd(daemon.VerbServices, &cobra.Command{
		Short: "The Kubernetes Service frontend alone; it needs no capability",
		Long: `Run the Kubernetes Service frontend alone. It accepts the flags and the
configuration file of kube-proxy. It has no capability to set up connection
tracking: weft aggregator does that.`,
		Example: `  weft services --kubeconfig /etc/weft/kubeconfig --hostname-override node-a
  weft services --manifests deploy/examples/manifests --hostname-override node-1 --cluster-cidr 10.244.0.0/16`,
	})
}
