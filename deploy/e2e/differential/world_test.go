package differential

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

const (
	// namespace has the checks' objects.
	namespace = "differential"
	// node has the proxies.
	node = "node-1"
	zone = "zone-a"
)

type world struct {
	// minor is kube-proxy's version: current or earlier.
	minor      string
	cluster    *cluster.Cluster
	kubeconfig string
	peer, weft *side
}

// newWorld starts everything but the proxies, and stops it with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, current)
}

func newWorldOf(t *testing.T, minor string) *world {
	t.Helper()
	w := &world{minor: minor}
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	})
	if err := w.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) start(ctx context.Context) error {
	for _, dir := range []string{logDir, runDir} {
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	var err error
	command := kubeProxy
	if w.minor == earlier {
		command = earlierKubeProxy
	}
	if w.peer, err = newSide(kubeProxyName, command); err != nil {
		return err
	}
	if w.weft, err = newSide("weft", weft); err != nil {
		return err
	}
	// The API server is outside of both networks, at the same address for both.
	base, err := lab.CurrentNamespace("base")
	if err != nil {
		return err
	}
	addresses := w.weft.lab.Control.Addresses
	if _, err := base.Run(ctx, "ip", "address", "replace", addresses.V4.String()+"/32", "dev", "lo"); err != nil {
		return err
	}
	if _, err := base.Run(ctx, "ip", "address", "replace", addresses.V6.String()+"/128", "dev", "lo", "nodad"); err != nil {
		return err
	}
	w.cluster, err = cluster.Start(ctx, cluster.Config{
		Binary: program("controlplane"), Dir: runDir, LogDir: logDir, Host: &lab.Host{Namespace: base, Addresses: addresses},
	})
	if err != nil {
		return err
	}
	api := netip.AddrPortFrom(addresses.V4, 6443).String()
	for _, s := range w.sides() {
		if s.relay, err = s.lab.Control.Relay(api, base, api); err != nil {
			return err
		}
	}
	nodes := w.weft.lab.Nodes
	if err := errors.Join(w.cluster.CreateNodes(ctx, nodes, zone, "zone-b"), w.cluster.ReportAddresses(ctx, nodes)); err != nil {
		return err
	}
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := w.client().CoreV1().Namespaces().Create(ctx, o, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	// Package e2e tests the needed rights.
	w.kubeconfig = filepath.Join(runDir, "kubeconfig")
	return w.cluster.Admit(ctx, namespace, namespace, "cluster-admin", w.kubeconfig)
}

func (w *world) sides() []*side { return []*side{w.peer, w.weft} }

func (w *world) client() kubernetes.Interface { return w.cluster.Client() }

func (w *world) stop() error {
	var errs []error
	for _, s := range w.sides() {
		if s != nil {
			errs = append(errs, s.close())
		}
	}
	if w.cluster != nil {
		errs = append(errs, w.cluster.Stop())
	}
	return errors.Join(errs...)
}
