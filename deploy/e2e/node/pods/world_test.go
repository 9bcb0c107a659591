package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// The scenarios share the world.
type world struct {
	lab     *lab.Lab
	cluster *cluster.Cluster
	// in the order of lab.Nodes
	nodes []*lab.Process
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
	if err := errors.Join(os.RemoveAll(logDir), os.RemoveAll(runDir)); err != nil {
		return fmt.Errorf("remove what the last run left: %w", err)
	}
	if err := errors.Join(os.MkdirAll(logDir, 0o755), os.MkdirAll(runDir, 0o755)); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	var err error
	if w.lab, err = lab.New(lab.Config{Nodes: 2}); err != nil {
		return err
	}
	w.cluster, err = cluster.Start(ctx, cluster.Config{Binary: programs.Path("controlplane"), Dir: runDir, LogDir: logDir, Host: w.lab.Control})
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(runDir, "node.kubeconfig")
	if err := w.cluster.WriteKubeconfig(kubeconfig, w.cluster.Admin().BearerToken); err != nil {
		return err
	}
	for _, n := range w.lab.Nodes {
		if err := w.startNode(ctx, n, kubeconfig); err != nil {
			return err
		}
	}
	return w.waitReady(ctx)
}

// startNode writes the Node object with its pods' prefixes, as a cloud provider does, and starts the
// node.
func (w *world) startNode(ctx context.Context, n *lab.Node, kubeconfig string) error {
	spec := corev1.NodeSpec{PodCIDR: n.PodCIDRs[0].String(), PodCIDRs: []string{n.PodCIDRs[0].String(), n.PodCIDRs[1].String()}}
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name()}, Spec: spec}
	if _, err := w.cluster.Client().CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create node %s: %w", n.Name(), err)
	}
	p, err := n.Start(n.Name(), filepath.Join(logDir, n.Name()+".log"), nil,
		programs.Path("node"), "kubelet", "--name", n.Name(), "--kubeconfig", kubeconfig, "--root", filepath.Join(runDir, n.Name()),
		"--node-ips", n.Addresses.V4.String()+","+n.Addresses.V6.String(),
		"--labels", "topology.kubernetes.io/zone=zone-"+n.Name(), "--cluster-dns", "10.96.0.10")
	if err != nil {
		return err
	}
	w.nodes = append(w.nodes, p)
	return nil
}

func (w *world) waitReady(ctx context.Context) error {
	return eventually(ctx, time.Minute, func() error {
		for _, p := range w.nodes {
			if err := p.Err(); err != nil {
				return stopWaiting{err}
			}
			n, err := w.cluster.Client().CoreV1().Nodes().Get(ctx, p.Name, metav1.GetOptions{})
			if err != nil {
				return fmt.Errorf("get node: %w", err)
			}
			if c := condition(n, corev1.NodeReady); c.Status != corev1.ConditionTrue {
				return fmt.Errorf("node %s is not ready: %s: %s", n.Name, c.Reason, c.Message)
			}
		}
		return nil
	})
}

func condition(n *corev1.Node, kind corev1.NodeConditionType) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.NodeCondition{Type: kind, Reason: "Missing"}
}

// stop sends SIGTERM to the nodes.
func (w *world) stop() error {
	var errs []error
	for _, p := range w.nodes {
		errs = append(errs, p.Stop(20*time.Second))
	}
	if w.cluster != nil {
		errs = append(errs, w.cluster.Stop())
	}
	if w.lab != nil {
		w.lab.Close()
	}
	return errors.Join(errs...)
}
