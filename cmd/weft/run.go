package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/daemon"
)

func daemonCmds() (all []*cobra.Command) {
	for verb, cmd := range map[daemon.Verb]*cobra.Command{
		daemon.VerbRun: {
			Short: "Aggregator and Kubernetes frontends in one process: Services, and with --network-policy NetworkPolicies",
			Long: `Run the aggregator and the Kubernetes Service frontend in one process, and with
--network-policy the NetworkPolicy frontend too. The frontends publish over the
socket, like every other publisher.

It accepts the flags of kube-proxy, and with --config its configuration file
(kind KubeProxyConfiguration), unchanged. Settings that have no effect are named
in a warning. With such a file kube-proxy's flags have no effect, except
--hostname-override, --master and the flags of the log. --config also accepts the
file that says who may publish what (kind Configuration); both may be given. When
kube-proxy's file changes, weft ends with exit code 0, to be started again with
it; its rules stay in the kernel.

Like kube-proxy, it raises the limit of tracked connections and sets the timeouts
of connection tracking; --conntrack-max-per-core=0 and timeouts of 0 leave the
kernel's values.

Without --kubeconfig and --manifests the frontends use the pod's own service
account.

Linux before 5.13 is refused, unless the environment has
WEFT_SKIP_KERNEL_VERSION_CHECK=1 (or kube-proxy's variable
KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK=1).`,
			Example: `  weft run --kubeconfig /etc/weft/kubeconfig --hostname-override node-a --cluster-cidr 10.244.0.0/16,fd00:10:244::/56
  weft run --manifests deploy/examples/manifests --hostname-override node-a --cluster-cidr 10.244.0.0/16
  weft run --kubeconfig /etc/weft/kubeconfig --hostname-override node-a --cluster-cidr 10.244.0.0/16 --network-policy`,
		},
		daemon.VerbAggregator: {
			Short: "The aggregator alone: the socket and the one writer; it needs CAP_NET_ADMIN",
			Long: `Run the aggregator alone: the socket and the one writer. It needs CAP_NET_ADMIN.

If a flag or a configuration file of kube-proxy (--config) says so, it also sets
up connection tracking, as kube-proxy does: the Service frontend, in another
process, has no capability for that. Otherwise it keeps the kernel's values.`,
			Example: `  weft aggregator
  weft aggregator --socket /tmp/weft/weft.sock --state-dir /tmp/weft/state --metrics-bind-address=`,
		},
		daemon.VerbServices: {
			Short: "The Kubernetes Service frontend alone; it needs no capability",
			Long: `Run the Kubernetes Service frontend alone. It accepts the flags and the
configuration file of kube-proxy. It has no capability to set up connection
tracking: weft aggregator does that.`,
			Example: `  weft services --kubeconfig /etc/weft/kubeconfig --hostname-override node-a
  weft services --manifests deploy/examples/manifests --hostname-override node-1 --cluster-cidr 10.244.0.0/16`,
		},
		daemon.VerbPolicy: {
			Short: "The Kubernetes NetworkPolicy frontend alone; it needs no capability",
			Long: `Run the Kubernetes NetworkPolicy frontend alone: it enforces NetworkPolicies, and
ClusterNetworkPolicies while the cluster has them, for the pods of this node. It
publishes over the socket of "weft run" or "weft aggregator", under the name
"policy". To have it in one process with the Services, use
"weft run --network-policy".

Without --kubeconfig and --manifests it uses the pod's own service account.`,
			Example: `  weft policy --kubeconfig /etc/weft/kubeconfig --hostname-override node-a
  weft policy --manifests deploy/examples/policies --hostname-override node-a --policy-start=deny`,
		},
	} {
		cmd.Use, cmd.Args = string(verb), cobra.NoArgs
		flags := daemon.AddFlags(cmd.Flags(), verb)
		cmd.SetUsageFunc(func(cmd *cobra.Command) error {
			cmd.InitDefaultHelpFlag()
			_, err := fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nExamples:\n%s\n%s", cmd.UseLine(), cmd.Example, flags.Usages(cmd.Flags().Lookup("help")))
			return err
		})
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			return flags.Run(cmd.Context(), cmd.ErrOrStderr(), version)
		}
		all = append(all, cmd)
	}
	return all
}
