package main

import (
	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/daemon"
)

func newPolicyCmd() *cobra.Command {
	return daemonCmd(daemon.VerbPolicy, &cobra.Command{
		Short: "The Kubernetes NetworkPolicy frontend alone; it needs no capability",
		Long: `Run the Kubernetes NetworkPolicy frontend alone: it enforces NetworkPolicies, and
ClusterNetworkPolicies while the cluster has them, for the pods of this node. It
publishes over the socket of "weft run" or "weft aggregator", under the name
"policy". To have it in one process with the Services, use
"weft run --network-policy".

Without --kubeconfig and --manifests it uses the pod's own service account.`,
		Example: `  weft policy --kubeconfig /etc/weft/kubeconfig --hostname-override node-a
  weft policy --manifests deploy/examples/policies --hostname-override node-a --policy-start=deny`,
	})
}
