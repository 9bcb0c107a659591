package differential

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	cluster    *cluster.Cluster
	kubeconfig string
	peer, weft *side
}

// newWorld starts everything but the proxies, and stops it with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
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
	if w.peer, err = newSide(kubeProxyName, kubeProxy); err != nil {
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
	api := netip.AddrPortFrom(addresses.V4, 6443)
	for _, s := range w.sides() {
		if err := s.relay(base, api); err != nil {
			return err
		}
	}
	if err := w.createNodes(ctx); err != nil {
		return err
	}
	return w.createAccount(ctx)
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

// createAccount makes the account of both proxies. Package e2e tests the needed rights.
func (w *world) createAccount(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: namespace, Namespace: namespace}
	if _, err := w.client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	if _, err := w.client().CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create account: %w", err)
	}
	_, err := w.client().RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: meta.Name, Namespace: meta.Namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind account: %w", err)
	}
	token, err := w.cluster.Token(ctx, meta.Namespace, meta.Name)
	if err != nil {
		return err
	}
	w.kubeconfig = filepath.Join(runDir, "kubeconfig")
	return w.cluster.WriteKubeconfig(w.kubeconfig, token)
}

func (w *world) createNodes(ctx context.Context) error {
	nodes := w.client().CoreV1().Nodes()
	for i, n := range w.weft.lab.Nodes {
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:   n.Name(),
			Labels: map[string]string{corev1.LabelHostname: n.Name(), corev1.LabelTopologyZone: []string{zone, "zone-b"}[i]},
		}}
		for _, p := range n.PodCIDRs {
			o.Spec.PodCIDRs = append(o.Spec.PodCIDRs, p.String())
		}
		o.Spec.PodCIDR = o.Spec.PodCIDRs[0]
		created, err := nodes.Create(ctx, o, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create node %s: %w", n.Name(), err)
		}
		for _, a := range n.Addresses.All() {
			created.Status.Addresses = append(created.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
		}
		if _, err := nodes.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("write addresses of node %s: %w", n.Name(), err)
		}
	}
	return nil
}

// within retries f for d, and returns its last error.
func within(ctx context.Context, d time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
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
