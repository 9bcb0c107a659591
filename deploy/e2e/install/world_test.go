package install

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

const patience = 3 * time.Minute

// world is a cluster as a user finds it.
type world struct {
	logs     string
	lab      *lab.Lab
	cluster  *cluster.Cluster
	kubelets []*lab.Process
	user     *user
	// members are the cluster's nodes. Other nodes are only in its network.
	members []*lab.Node
	web     service
	// stops end processes beside the cluster.
	stops []func() error
}

// newWorld stops the cluster with the test.
func newWorld(t *testing.T, ctx context.Context, k kind) *world {
	t.Helper()
	w := &world{logs: filepath.Join(logDir, strings.ReplaceAll(k.name, " ", "-"))}
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the logs are in %s", w.logs)
		}
	})
	if err := w.start(ctx, k); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) start(ctx context.Context, k kind) error {
	for _, dir := range []string{w.logs, runDir} {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	var err error
	if w.lab, err = lab.New(lab.Config{Nodes: 2, Routed: cluster.ServiceCIDRs(), PodCIDRs: k.podCIDRs}); err != nil {
		return err
	}
	w.members = w.lab.Nodes[:k.members]
	if w.cluster, err = cluster.Start(ctx, cluster.Config{Binary: program("controlplane"), Dir: runDir, LogDir: w.logs, Host: w.lab.Control, Full: true}); err != nil {
		return err
	}
	kubeconfig := filepath.Join(runDir, "admin.kubeconfig")
	if err := w.cluster.WriteKubeconfig(kubeconfig, w.cluster.Admin().BearerToken); err != nil {
		return err
	}
	if w.user, err = newUser(w.lab.Control.Namespace, filepath.Join(runDir, "home"), kubeconfig); err != nil {
		return err
	}
	if err := w.cluster.CreateNodes(ctx, w.members); err != nil {
		return err
	}
	for _, n := range w.members {
		p, err := w.cluster.StartKubelet(n, program("node"), kubeconfig)
		if err != nil {
			return err
		}
		w.kubelets = append(w.kubelets, p)
	}
	for _, step := range []func(context.Context) error{w.cluster.CreateDNS, w.startWeb, func(ctx context.Context) error { return k.prepare(ctx, w) }} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startWeb creates the Service, and waits until its pods run and have addresses.
func (w *world) startWeb(ctx context.Context) error {
	text, err := os.ReadFile("testdata/web.yaml")
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	if err := w.cluster.CreateObjects(ctx, text); err != nil {
		return err
	}
	s, err := w.cluster.Client().CoreV1().Services(metav1.NamespaceDefault).Get(ctx, webName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.web = service{address: netip.MustParseAddr(s.Spec.ClusterIP), nodePort: int(s.Spec.Ports[0].NodePort), pods: map[string]netip.Addr{}}
	return w.within(ctx, patience, func() error {
		pods, err := w.cluster.Client().CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + webName})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning {
				w.web.pods[p.Spec.NodeName] = netip.MustParseAddr(p.Status.PodIP)
			}
		}
		if len(w.web.pods) < len(w.members) {
			return fmt.Errorf("pods of %s run on %d nodes of %d", webName, len(w.web.pods), len(w.members))
		}
		return nil
	})
}

// within retries f for d, and returns its last error. It fails if a kubelet has ended.
func (w *world) within(ctx context.Context, d time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for tick := time.NewTicker(interval); ; {
		err := f()
		for _, p := range w.kubelets {
			if ended := p.Err(); ended != nil {
				return errors.Join(err, ended)
			}
		}
		if err == nil {
			tick.Stop()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", d, err)
		case <-tick.C:
		}
	}
}

func (w *world) stop() error {
	var errs []error
	for _, stop := range w.stops {
		errs = append(errs, stop())
	}
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
