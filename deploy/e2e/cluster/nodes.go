package cluster

import (
	"context"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// CreateNodes writes Node objects with their pod prefixes, in the zones in turn. The kubelets write the
// rest.
func (c *Cluster) CreateNodes(ctx context.Context, nodes []*lab.Node, zones ...string) error {
	for i, n := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name(), Labels: map[string]string{corev1.LabelHostname: n.Name()}}}
		if len(zones) > 0 {
			node.Labels[corev1.LabelTopologyZone] = zones[i%len(zones)]
		}
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

// ReportAddresses writes the nodes' addresses, for nodes without a kubelet.
func (c *Cluster) ReportAddresses(ctx context.Context, nodes []*lab.Node) error {
	for _, n := range nodes {
		node, err := c.client.CoreV1().Nodes().Get(ctx, n.Name(), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read node %s: %w", n.Name(), err)
		}
		for _, a := range n.Addresses.All() {
			node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
		}
		if _, err := c.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("write addresses of node %s: %w", n.Name(), err)
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
		binary, "kubelet", "--name", n.Name(), "--node-ips", lab.Join(n.Addresses.All()),
		"--kubeconfig", kubeconfig, "--root", filepath.Join(c.cfg.Dir, n.Name()), "--cluster-dns", DNSAddresses()[0].String())
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
