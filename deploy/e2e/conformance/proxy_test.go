package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	var err error
	switch w.proxy {
	case weft:
		err = errors.Join(w.kubectl(ctx, "apply", "-f", "../../kubernetes/network-policy/rbac.yaml"), w.defineClusterPolicies(ctx))
	case kubeProxy:
		err = w.admitKubeProxy(ctx)
	default:
		err = fmt.Errorf("-conformance.proxy: %q: want %s or %s", w.proxy, weft, kubeProxy)
	}
	if err != nil {
		return err
	}
	token, err := w.cluster.Token(ctx, metav1.NamespaceSystem, w.proxy)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(runDir, w.proxy+".kubeconfig")
	if err := w.cluster.WriteKubeconfig(kubeconfig, token); err != nil {
		return err
	}
	for _, n := range w.lab.Nodes {
		argv := kubeProxyCommand(n, kubeconfig)
		if w.proxy == weft {
			dir := filepath.Join(runDir, n.Name(), weft)
			if err := os.MkdirAll(filepath.Join(dir, "state"), 0o750); err != nil {
				return fmt.Errorf("make directory of %s: %w", n.Name(), err)
			}
			argv = weftCommand(n, kubeconfig, dir)
		}
		d := w.daemon(n.Namespace, n.Name()+"-"+w.proxy, argv...)
		w.proxies = append(w.proxies, d)
		if err := d.start(); err != nil {
			return err
		}
	}
	return nil
}

// weftCommand is the command of deploy/kubernetes/single, with policies.
func weftCommand(n *lab.Node, kubeconfig, dir string) []string {
	return []string{
		program(weft), "run", "--network-policy", "--kubeconfig", kubeconfig, "--hostname-override", n.Name(),
		"--cluster-cidr", join(lab.ClusterCIDRs()), "--socket", filepath.Join(dir, "weft.sock"), "--state-dir", filepath.Join(dir, "state"),
		"--metrics-bind-address", metricsAddress, "--healthz-bind-address", fmt.Sprintf("0.0.0.0:%d", healthPort),
	}
}

// A namespace may not change the machine's limits.
func kubeProxyCommand(n *lab.Node, kubeconfig string) []string {
	return []string{
		program(kubeProxy), "--kubeconfig", kubeconfig, "--hostname-override", n.Name(),
		"--proxy-mode", "nftables", "--cluster-cidr", join(lab.ClusterCIDRs()),
		"--conntrack-max-per-core=0", "--conntrack-min=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		"--metrics-bind-address", metricsAddress, "--healthz-bind-address", fmt.Sprintf("0.0.0.0:%d", healthPort), "--v=2",
	}
}

// admitKubeProxy makes kube-proxy's service account, with the role that the API server has for it.
func (w *world) admitKubeProxy(ctx context.Context) error {
	client := w.cluster.Client()
	meta := metav1.ObjectMeta{Name: kubeProxy, Namespace: metav1.NamespaceSystem}
	if _, err := client.CoreV1().ServiceAccounts(meta.Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create service account of kube-proxy: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: kubeProxy},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-proxier"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: meta.Name, Namespace: meta.Namespace}},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("bind role of kube-proxy: %w", err)
	}
	return nil
}

func join[T netip.Prefix | netip.Addr](values []T) string {
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprint(v))
	}
	return strings.Join(all, ",")
}
