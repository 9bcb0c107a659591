package main

import (
	"github.com/spf13/cobra"

	"github.com/weft-proxy/weft/cmd/weft/daemon"
)

func newRunCmd() *cobra.Command {
	return daemonCmd(daemon.VerbRun, &cobra.Command{
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
	})
}

// daemonCmd completes the command of a daemon.
func daemonCmd(verb daemon.Verb, cmd *cobra.Command) *cobra.Command {
	cmd.Use, cmd.Args = string(verb), cobra.NoArgs
	flags := daemon.AddFlags(cmd.Flags(), verb)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return flags.Run(cmd.Context(), cmd.ErrOrStderr(), version)
	}
	return cmd
}
