package migration

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// webPods is the number of possible endpoints on a node.
const webPods = 2

const without = "no-kube-proxy"

const webPort = 8080

type world struct {
	*cluster.World
	mode, logs string
	// clients are pods without servers, one on each node; web are pods with servers.
	clients, web []*lab.Pod
}

// newWorld stops everything with the test.
func newWorld(t *testing.T, ctx context.Context, mode string) *world {
	t.Helper()
	w := &world{mode: mode, logs: filepath.Join(logDir, mode)}
	var err error
	w.World, err = cluster.StartWorld(ctx, cluster.WorldConfig{
		Lab: lab.Config{Nodes: 3}, ControlPlane: program("controlplane"), Node: program("node"), Dir: runDir, LogDir: w.logs,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the logs are in %s", w.logs)
		}
	})
	if err := w.addPods(); err != nil {
		t.Fatal(err)
	}
	if mode == without {
		return w
	}
	if err := w.Cluster.CreateKubeProxy(ctx, cluster.KubeProxy{Mode: mode, ClusterCIDRs: lab.ClusterCIDRs()}); err != nil {
		t.Fatal(err)
	}
	if err := w.rollout(ctx, "kube-proxy"); err != nil {
		t.Fatal(err)
	}
	return w
}

// weft runs as an administrator, outside of the cluster.
func (w *world) weft(ctx context.Context, args ...string) (string, error) {
	return w.Lab.Control.Run(ctx, program("weft"), append(args, "--kubeconfig", w.Kubeconfig)...)
}

func (w *world) addPods() error {
	for i, n := range w.Lab.Nodes {
		c, err := n.NewPod(fmt.Sprintf("client-%d", i+1))
		if err != nil {
			return err
		}
		w.clients = append(w.clients, c)
		for j := range webPods {
			p, err := n.NewPod(fmt.Sprintf("web-%d-%d", i+1, j+1))
			if err != nil {
				return err
			}
			if err := p.Serve(webPort); err != nil {
				return err
			}
			w.web = append(w.web, p)
		}
	}
	return nil
}

// rollout waits until a DaemonSet has ready pods of its newest template on all nodes.
func (w *world) rollout(ctx context.Context, name string) error {
	return lab.Within(ctx, 3*time.Minute, func() error { return w.Cluster.RolledOut(ctx, name, len(w.Members)) })
}
