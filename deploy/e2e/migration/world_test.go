package migration

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	mode, logs  string
	lab         *lab.Lab
	cluster     *cluster.Cluster
	kubectlPath string
	kubelets    []*lab.Process
	// clients are pods without servers, one on each node; web are pods with servers.
	clients, web []*lab.Pod
}

// newWorld stops everything with the test.
func newWorld(t *testing.T, ctx context.Context, mode string) *world {
	t.Helper()
	w := &world{mode: mode, logs: filepath.Join(logDir, mode)}
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the logs are in %s", w.logs)
		}
	})
	if err := w.start(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) start(ctx context.Context) error {
	for _, dir := range []string{w.logs, runDir} {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	var err error
	if w.lab, err = lab.New(lab.Config{Nodes: 3, Routed: cluster.ServiceCIDRs()}); err != nil {
		return err
	}
	w.cluster, err = cluster.Start(ctx, cluster.Config{Binary: program("controlplane"), Dir: runDir, LogDir: w.logs, Host: w.lab.Control, Full: true})
	if err != nil {
		return err
	}
	if err := w.cluster.WriteKubeconfig(w.kubeconfig(), w.cluster.Admin().BearerToken); err != nil {
		return err
	}
	if w.kubectlPath, err = cluster.LinkKubectl(program("controlplane"), runDir); err != nil {
		return err
	}
	steps := []func(context.Context) error{w.createNodes, w.startKubelets, w.addPods}
	if w.mode != without {
		steps = append(steps, w.installKubeProxy)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) kubeconfig() string { return filepath.Join(runDir, "admin.kubeconfig") }

func (w *world) kubectl(ctx context.Context, args ...string) (string, error) {
	return w.lab.Control.Run(ctx, w.kubectlPath, append([]string{"--kubeconfig", w.kubeconfig()}, args...)...)
}

// weft runs as an administrator, outside of the cluster.
func (w *world) weft(ctx context.Context, args ...string) (string, error) {
	return w.lab.Control.Run(ctx, program("weft"), append(args, "--kubeconfig", w.kubeconfig())...)
}

func (w *world) createNodes(ctx context.Context) error {
	return w.cluster.CreateNodes(ctx, w.lab.Nodes)
}

func (w *world) startKubelets(context.Context) error {
	for _, n := range w.lab.Nodes {
		p, err := w.cluster.StartKubelet(n, program("node"), w.kubeconfig())
		if err != nil {
			return err
		}
		w.kubelets = append(w.kubelets, p)
	}
	return nil
}

func (w *world) addPods(context.Context) error {
	for i, n := range w.lab.Nodes {
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

// installKubeProxy waits until kube-proxy runs on every node.
func (w *world) installKubeProxy(ctx context.Context) error {
	if err := w.cluster.CreateKubeProxy(ctx, cluster.KubeProxy{Mode: w.mode, ClusterCIDRs: lab.ClusterCIDRs()}); err != nil {
		return err
	}
	return w.rollout(ctx, "kube-proxy", len(w.lab.Nodes))
}

// rollout waits until a DaemonSet has ready pods of its newest template on n nodes.
func (w *world) rollout(ctx context.Context, name string, n int) error {
	return within(ctx, 3*time.Minute, func() error {
		for _, p := range w.kubelets {
			if err := p.Err(); err != nil {
				return err
			}
		}
		return w.cluster.RolledOut(ctx, name, n)
	})
}

func (w *world) stop() error {
	var errs []error
	for _, p := range w.kubelets {
		errs = append(errs, p.Stop(30*time.Second))
	}
	if w.cluster != nil {
		errs = append(errs, w.cluster.Stop())
	}
	if w.lab != nil {
		w.lab.Close()
	}
	return errors.Join(errs...)
}

// within retries f for d, and returns its last error.
func within(ctx context.Context, d time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", d, err)
		case <-tick.C:
		}
	}
}
