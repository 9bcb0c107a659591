package migrate

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/takeover"
)

type access struct {
	kubeconfig, context string
	timeout             time.Duration
}

// New returns the command.
func New() *cobra.Command {
	a := &access{}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Take the nodes of a cluster from kube-proxy to weft, one at a time, and back",
		Long: `Take the nodes of a cluster from kube-proxy to weft, one at a time, and back.

The label ` + takeover.Label + ` of a Node says which proxy it has: without it, kube-proxy;
"` + takeover.Beside + `", both, of which weft is about to take over; "` + takeover.Weft + `", weft. The verbs set it and wait
until the node is there, and kubectl label does the same without the wait. They need the rights
to label Nodes and to read what they wait for.`,
		Example: `  weft migrate assess
  weft migrate prepare
  weft migrate node node-1
  weft migrate rollback node-1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&a.kubeconfig, "kubeconfig", "", "path of a kubeconfig (default: $KUBECONFIG, or ~/.kube/config)")
	cmd.PersistentFlags().StringVar(&a.context, "context", "", "context of the kubeconfig (default: its current one)")
	cmd.AddCommand(newAssessCmd(a), newPrepareCmd(a),
		newNodeCmd(a, "node", "Take nodes from kube-proxy to weft, one after the other", `Take nodes from kube-proxy to weft, one after the other. weft starts beside kube-proxy; when its rules are
in force kube-proxy leaves the node; when that has ended weft removes the rules that it
left. The rules of one of the two are up to date at any time, and connections go on. If weft
does not become ready the node stays kube-proxy's.`, (*cluster).migrate),
		newNodeCmd(a, "rollback", "Take nodes from weft back to kube-proxy, one after the other", `Take nodes from weft back to kube-proxy, one after the other. weft updates its rules
until those of kube-proxy are in force, and then removes them.`, (*cluster).rollback))
	return cmd
}

func (a *access) open(w io.Writer) (*cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("use kubeconfig: %w", err)
	}
	return &cluster{client: client, timeout: a.timeout, say: func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }}, nil
}

func newAssessCmd(a *access) *cobra.Command {
	var output cli.Output
	cmd := &cobra.Command{
		Use:   "assess",
		Short: "Say what stands against weft on a cluster, and what will differ from kube-proxy",
		Long: `Read the cluster, and this machine if it is a node, and say what stands against weft and what will differ
from kube-proxy: its mode and configuration, the scheduler of IPVS, addresses of NodePorts, kernels,
rules of other programs. It changes nothing.

The exit code is 1 if something stands against it ("blocks"), 3 if something will differ ("differs"), and 0
otherwise.`,
		Example: "  weft migrate assess\n  weft migrate assess -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.open(io.Discard)
			if err != nil {
				return err
			}
			report, err := c.assess(cmd.Context())
			if err != nil {
				return err
			}
			report.addHost(cmd.Context())
			if err := output.Write(cmd.OutOrStdout(), report, func() error { return report.print(cmd.OutOrStdout()) }); err != nil {
				return err
			}
			return report.exit()
		},
	}
	output.AddFlag(cmd, "text", "json", "yaml")
	return cmd
}

func newPrepareCmd(a *access) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Print the patch with which kube-proxy leaves the nodes that are weft's, and apply it with --yes",
		Long: `Print the patch of kube-proxy's DaemonSet with which it leaves the nodes whose label ` + takeover.Label + ` is
"` + takeover.Weft + `", and apply it with --yes. No node has the label yet, so all keep kube-proxy; its pods start anew,
one after the other, as the DaemonSet says.`,
		Example: "  weft migrate prepare\n  weft migrate prepare --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.open(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return c.prepare(cmd.Context(), cmd.OutOrStdout(), yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "apply the patch")
	return cmd
}

// prepare prints the patch to w, and applies it if yes is set.
func (c *cluster) prepare(ctx context.Context, w io.Writer, yes bool) error {
	p, err := c.affinity(ctx)
	if err != nil {
		return err
	}
	if p == nil {
		c.say("DaemonSet %s/%s leaves the nodes that are weft's already", namespace, peerName)
		return nil
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if !yes {
		c.say("this is not applied: --yes patches DaemonSet %s/%s with it", namespace, peerName)
		return nil
	}
	if err := c.apply(ctx, p); err != nil {
		return err
	}
	c.say("DaemonSet %s/%s is patched", namespace, peerName)
	return nil
}

// newNodeCmd returns a verb: it calls do for each node in sequence.
func newNodeCmd(a *access, verb, short, long string, do func(*cluster, context.Context, string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:     verb + " NODE...",
		Short:   short,
		Long:    long,
		Example: "  weft migrate " + verb + " node-1",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, nodes []string) error {
			c, err := a.open(cmd.OutOrStdout())
			if err != nil {
				return err
			}
			for _, node := range nodes {
				if err := do(c, cmd.Context(), node); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&a.timeout, "timeout", 5*time.Minute, "how long each step of a node may take")
	return cmd
}
