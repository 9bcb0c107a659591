package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

const (
	weft      = "weft"
	kubeProxy = "kube-proxy"
)

// The addresses documented for kube-proxy.
const (
	healthPort     = 10256
	metricsAddress = "127.0.0.1:10249"
)

// startProxies runs the world's proxy on every node, with the rights of its manifests.
func (w *world) startProxies(ctx context.Context) error {
	kubeconfig := filepath.Join(runDir, w.proxy+".kubeconfig")
	var err error
	switch w.proxy {
	case weft:
		err = errors.Join(w.kubectl(ctx, "apply", "-f", "../../kubernetes/network-policy/rbac.yaml"), w.defineClusterPolicies(ctx),
			w.Cluster.Kubeconfig(ctx, metav1.NamespaceSystem, weft, kubeconfig))
	case kubeProxy:
		// The API server has a role for kube-proxy.
		err = w.Cluster.Admit(ctx, metav1.NamespaceSystem, kubeProxy, "system:node-proxier", kubeconfig)
	default:
		err = fmt.Errorf("-conformance.proxy: %q: want %s or %s", w.proxy, weft, kubeProxy)
	}
	if err != nil {
		return err
	}
	for _, n := range w.Lab.Nodes {
		argv := kubeProxyCommand(n, kubeconfig)
		if w.proxy == weft {
			dir := filepath.Join(runDir, n.Name(), weft)
			if err := os.MkdirAll(filepath.Join(dir, "state"), 0o750); err != nil {
				return fmt.Errorf("make directory of %s: %w", n.Name(), err)
			}
			argv = weftCommand(n, kubeconfig, dir)
		}
		name := n.Name() + "-" + w.proxy
		d := &daemon{namespace: n.Namespace, name: name, log: filepath.Join(w.logs, name+".log"), argv: argv}
		w.proxies = append(w.proxies, d)
		if err := d.start(); err != nil {
			return err
		}
	}
	return nil
}

// nodePorts is the proxies' flag for the specs of LocalhostNodePorts.
const nodePorts = "--nodeport-addresses=primary,localhost"

// weftCommand is the command of deploy/kubernetes/single, with policies.
func weftCommand(n *lab.Node, kubeconfig, dir string) []string {
	return []string{
		program(weft), "run", "--network-policy", "--kubeconfig", kubeconfig, "--hostname-override", n.Name(),
		"--cluster-cidr", lab.Join(lab.ClusterCIDRs()), "--socket", filepath.Join(dir, "weft.sock"), "--state-dir", filepath.Join(dir, "state"),
		"--metrics-bind-address", metricsAddress, "--healthz-bind-address", fmt.Sprintf("0.0.0.0:%d", healthPort), nodePorts,
	}
}

// A namespace may not change the machine's limits.
func kubeProxyCommand(n *lab.Node, kubeconfig string) []string {
	return []string{
		program(kubeProxy), "--kubeconfig", kubeconfig, "--hostname-override", n.Name(),
		"--proxy-mode", "nftables", "--cluster-cidr", lab.Join(lab.ClusterCIDRs()),
		"--conntrack-max-per-core=0", "--conntrack-min=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		"--metrics-bind-address", metricsAddress, "--healthz-bind-address", fmt.Sprintf("0.0.0.0:%d", healthPort), "--v=2",
		nodePorts, "--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true",
	}
}
