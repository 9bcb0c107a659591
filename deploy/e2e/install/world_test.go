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
	*cluster.World
	logs string
	user *user
	web  service
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
	var err error
	w.World, err = cluster.StartWorld(ctx, cluster.WorldConfig{
		Lab: lab.Config{Nodes: 2, PodCIDRs: k.podCIDRs}, Members: k.members,
		ControlPlane: program("controlplane"), Node: program("node"), Dir: runDir, LogDir: w.logs,
	})
	if err != nil {
		return err
	}
	if w.user, err = newUser(w.Lab.Control.Namespace, filepath.Join(runDir, "home"), w.Kubeconfig); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{w.Cluster.CreateDNS, w.startWeb, func(ctx context.Context) error { return k.prepare(ctx, w) }} {
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
	if err := w.Cluster.CreateObjects(ctx, text); err != nil {
		return err
	}
	s, err := w.Cluster.Client().CoreV1().Services(metav1.NamespaceDefault).Get(ctx, webName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	w.web = service{address: netip.MustParseAddr(s.Spec.ClusterIP), nodePort: int(s.Spec.Ports[0].NodePort), pods: map[string]netip.Addr{}}
	return lab.Within(ctx, patience, func() error {
		pods, err := w.Cluster.Client().CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + webName})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning {
				w.web.pods[p.Spec.NodeName] = netip.MustParseAddr(p.Status.PodIP)
			}
		}
		if len(w.web.pods) < len(w.Members) {
			return fmt.Errorf("pods of %s run on %d nodes of %d", webName, len(w.web.pods), len(w.Members))
		}
		return nil
	})
}

func (w *world) stop() error {
	var errs []error
	for _, stop := range w.stops {
		errs = append(errs, stop())
	}
	if w.World != nil {
		errs = append(errs, w.World.Stop())
	}
	return errors.Join(errs...)
}
