package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// The scenarios share the world.
type world struct {
	lab     *lab.Lab
	cluster *cluster.Cluster
	// clients are pods without servers, one on each node.
	clients []*lab.Pod
	// web are pods with servers on webPorts, on the nodes in turn: the first node has the first and the
	// fourth.
	web []*lab.Pod
	// one on each node
	daemons []*daemon
}

var webPorts = []uint16{8080, 9090}

// logDir has the logs of the last run; other files are in runDir, which is private.
const (
	logDir = "bin/logs"
	runDir = "/run/e2e"
)

// externalRanges are documentation prefixes for external IPs and load balancer addresses, routed from
// outside to the first node.
func externalRanges() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/64")}
}

// newWorld stops everything with the test.
func newWorld(t *testing.T, ctx context.Context) *world {
	t.Helper()
	w := &world{}
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	})
	if err := w.start(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) start(ctx context.Context) error {
	if err := os.RemoveAll(logDir); err != nil {
		return fmt.Errorf("clear logs: %w", err)
	}
	for _, dir := range []string{logDir, runDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	var err error
	if w.lab, err = lab.New(lab.Config{Nodes: 3, Routed: append(cluster.ServiceCIDRs(), externalRanges()...)}); err != nil {
		return err
	}
	if err := w.addPods(); err != nil {
		return err
	}
	w.cluster, err = cluster.Start(ctx, cluster.Config{
		Binary: binary("controlplane"), Dir: runDir, LogDir: logDir, Host: w.lab.Control,
	})
	if err != nil {
		return err
	}
	if err := w.createNodes(ctx); err != nil {
		return err
	}
	return w.startDaemons(ctx)
}

func (w *world) addPods() error {
	for i, n := range w.lab.Nodes {
		p, err := n.NewPod(fmt.Sprintf("client-%d", i+1))
		if err != nil {
			return err
		}
		w.clients = append(w.clients, p)
	}
	for i := range 4 {
		p, err := w.lab.Nodes[i%len(w.lab.Nodes)].NewPod(fmt.Sprintf("web-%d", i+1))
		if err != nil {
			return err
		}
		w.web = append(w.web, p)
		if err := p.Serve(webPorts...); err != nil {
			return err
		}
	}
	return nil
}

// startDaemons grants weft the rights in deploy/kubernetes, and starts it on every node.
func (w *world) startDaemons(ctx context.Context) error {
	objects, err := manifests("split/rbac.yaml")
	if err != nil {
		return err
	}
	if err := apply(ctx, w.cluster, false, objects...); err != nil {
		return err
	}
	token, err := w.cluster.Token(ctx, "kube-system", "weft")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(runDir, "weft.kubeconfig")
	if err := w.cluster.WriteKubeconfig(kubeconfig, token); err != nil {
		return err
	}
	for i, n := range w.lab.Nodes {
		d, err := newDaemon(n, kubeconfig, i != 1)
		if err != nil {
			return err
		}
		w.daemons = append(w.daemons, d)
		if err := d.start(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) stop() error {
	var errs []error
	for _, d := range w.daemons {
		errs = append(errs, d.stop())
	}
	if w.cluster != nil {
		errs = append(errs, w.cluster.Stop())
	}
	if w.lab != nil {
		w.lab.Close()
	}
	return errors.Join(errs...)
}

func (w *world) nodeOf(p *lab.Pod) *lab.Node {
	for _, n := range w.lab.Nodes {
		if n.PodCIDRs[0].Contains(p.Addresses.V4) {
			return n
		}
	}
	return nil
}

// isNode reports whether the address is a node's own, on its link or towards its pods.
func (w *world) isNode(a netip.Addr) bool {
	for _, n := range w.lab.Nodes {
		if a == n.Addresses.V4 || a == n.Addresses.V6 {
			return true
		}
		for _, p := range n.PodCIDRs {
			if a == p.Addr().Next() {
				return true
			}
		}
	}
	return false
}
