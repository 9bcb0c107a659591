package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// The scenarios share the world.
type world struct {
	// apiServer is cluster.Config's.
	apiServer string

	lab     *lab.Lab
	cluster *cluster.Cluster
	// clients are pods without servers, one on each node.
	clients []*lab.Pod
	// web are pods with servers on webPort, on the nodes in turn: the first node has the first and the
	// fourth.
	web []*lab.Pod
	// one on each node
	daemons []*daemon
}

const webPort = 8080

// logDir has the logs of the last run; other files are in runDir, which is private.
const (
	logDir = "bin/logs"
	runDir = "/run/e2e"
)

// newWorld stops everything with the test.
func newWorld(t *testing.T, ctx context.Context, apiServer string) *world {
	t.Helper()
	w := &world{apiServer: apiServer}
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
	if err := errors.Join(os.RemoveAll(logDir), os.RemoveAll(runDir), os.MkdirAll(logDir, 0o755), os.MkdirAll(runDir, 0o755)); err != nil {
		return fmt.Errorf("make directories: %w", err)
	}
	var err error
	if w.lab, err = lab.New(lab.Config{Nodes: 3, Routed: cluster.ServiceCIDRs()}); err != nil {
		return err
	}
	if err := w.addPods(); err != nil {
		return err
	}
	w.cluster, err = cluster.Start(ctx, cluster.Config{
		Binary: binary("controlplane"), APIServer: w.apiServer, Dir: runDir, LogDir: logDir, Host: w.lab.Control,
	})
	if err != nil {
		return err
	}
	if err := errors.Join(w.cluster.CreateNodes(ctx, w.lab.Nodes), w.cluster.ReportAddresses(ctx, w.lab.Nodes)); err != nil {
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
		if err := p.Serve(webPort); err != nil {
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
	if err := w.cluster.Apply(ctx, false, objects...); err != nil {
		return err
	}
	kubeconfig := filepath.Join(runDir, "weft.kubeconfig")
	if err := w.cluster.Kubeconfig(ctx, "kube-system", "weft", kubeconfig); err != nil {
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
