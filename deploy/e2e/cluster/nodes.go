package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// CreateNodes writes Node objects with their pod prefixes. The kubelets write the rest.
func (c *Cluster) CreateNodes(ctx context.Context, nodes []*lab.Node) error {
	for _, n := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name(), Labels: map[string]string{corev1.LabelHostname: n.Name()}}}
		for _, p := range n.PodCIDRs {
			node.Spec.PodCIDRs = append(node.Spec.PodCIDRs, p.String())
		}
		node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
		if _, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", n.Name(), err)
		}
	}
	return nil
}

// StartKubelet runs binary, the built cmd/node, as a node's kubelet. Each node has its own /var/lib and
// /run/weft.
func (c *Cluster) StartKubelet(n *lab.Node, binary, kubeconfig string) (*lab.Process, error) {
	const own = `mount -t tmpfs -o mode=755 weft /var/lib && mkdir -p /run/weft && mount -t tmpfs -o mode=755 weft /run/weft && exec "$@"`
	return n.Start(n.Name()+"-kubelet", filepath.Join(c.cfg.LogDir, n.Name()+"-kubelet.log"), nil,
		"unshare", "--mount", "sh", "-c", own, "sh",
		binary, "kubelet", "--name", n.Name(), "--node-ips", joinAddresses(n.Addresses.All()),
		"--kubeconfig", kubeconfig, "--root", filepath.Join(c.cfg.Dir, n.Name()), "--cluster-dns", DNSAddresses()[0].String())
}

func joinAddresses(all []netip.Addr) string {
	var text []string
	for _, a := range all {
		text = append(text, a.String())
	}
	return strings.Join(text, ",")
}

// RolledOut returns an error unless a DaemonSet of kube-system has ready pods with the newest template on
// n nodes.
func (c *Cluster) RolledOut(ctx context.Context, name string, n int) error {
	d, err := c.client.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if s := d.Status; s.ObservedGeneration < d.Generation || int(s.DesiredNumberScheduled) != n || int(s.UpdatedNumberScheduled) != n || int(s.NumberAvailable) != n {
		return fmt.Errorf("DaemonSet %s: %d pods wanted, %d updated, %d available, not %d", name, s.DesiredNumberScheduled, s.UpdatedNumberScheduled, s.NumberAvailable, n)
	}
	return nil
}
