package migration

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// webPods is how many pods a node has that may be endpoints.
const webPods = 2

// without is the mode of a world that has no kube-proxy.
const without = "no-kube-proxy"

// webPort is the port of their servers.
const webPort = 8080

// world is everything that runs.
type world struct {
	mode, logs  string
	lab         *lab.Lab
	cluster     *cluster.Cluster
	kubectlPath string
	kubelets    []*lab.Process
	// clients are pods without servers, one on each node; web are those with.
	clients, web []*lab.Pod
}

// newWorld starts everything with a kube-proxy of a mode or without, and stops it with the test.
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

// kubeconfig is the path of an administrator's.
func (w *world) kubeconfig() string { return filepath.Join(runDir, "admin.kubeconfig") }

// kubectl runs it as an administrator.
func (w *world) kubectl(ctx context.Context, args ...string) (string, error) {
	return w.lab.Control.Run(ctx, w.kubectlPath, append([]string{"--kubeconfig", w.kubeconfig()}, args...)...)
}

// weft runs it as an administrator, outside of the cluster.
func (w *world) weft(ctx context.Context, args ...string) (string, error) {
	return w.lab.Control.Run(ctx, program("weft"), append(args, "--kubeconfig", w.kubeconfig())...)
}

// createNodes writes the Node objects with the prefixes of their pods. The kubelets write the rest.
func (w *world) createNodes(ctx context.Context) error {
	for _, n := range w.lab.Nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name(), Labels: map[string]string{corev1.LabelHostname: n.Name()}}}
		for _, p := range n.PodCIDRs {
			node.Spec.PodCIDRs = append(node.Spec.PodCIDRs, p.String())
		}
		node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
		if _, err := w.cluster.Client().CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s: %w", n.Name(), err)
		}
	}
	return nil
}

// startKubelets runs a kubelet on every node. The directories of weft are the node's own, and not the machine's.
func (w *world) startKubelets(context.Context) error {
	const own = `mount -t tmpfs -o mode=755 weft /var/lib && mkdir -p /run/weft && mount -t tmpfs -o mode=755 weft /run/weft && exec "$@"`
	for _, n := range w.lab.Nodes {
		p, err := n.Start(n.Name()+"-kubelet", filepath.Join(w.logs, n.Name()+"-kubelet.log"), nil,
			"unshare", "--mount", "sh", "-c", own, "sh",
			program("node"), "kubelet", "--name", n.Name(), "--node-ips", join(n.Addresses.All()),
			"--kubeconfig", w.kubeconfig(), "--root", filepath.Join(runDir, n.Name()), "--cluster-dns", cluster.DNSAddresses()[0].String())
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

// installKubeProxy applies kubeproxy.yaml, and waits until kube-proxy runs on every node.
func (w *world) installKubeProxy(ctx context.Context) error {
	programs, err := w.programs()
	if err != nil {
		return err
	}
	text, err := os.ReadFile("kubeproxy.yaml")
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	mode, _, _ := strings.Cut(w.mode, "-")
	manifest := filepath.Join(runDir, "kubeproxy.yaml")
	replaced := strings.NewReplacer("MODE", mode, "SERVER", w.cluster.URL(), "CLUSTER_CIDR", join(lab.ClusterCIDRs()), "PROGRAMS", programs).Replace(string(text))
	if err := os.WriteFile(manifest, []byte(replaced), 0o600); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if _, err := w.kubectl(ctx, "apply", "-f", manifest); err != nil {
		return err
	}
	return w.rollout(ctx, "kube-proxy", len(w.lab.Nodes))
}

// programs makes a directory with the iptables of the mode, and returns its path. It is empty in mode nftables.
func (w *world) programs() (string, error) {
	dir := filepath.Join(runDir, "programs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	if w.mode == "nftables" {
		return dir, nil
	}
	for _, family := range []string{"ip", "ip6"} {
		for _, verb := range []string{"", "-save", "-restore"} {
			target, err := exec.LookPath(strings.Replace(w.mode, "ip", family, 1) + verb)
			if err != nil {
				return "", fmt.Errorf("find programs of %s: %w", w.mode, err)
			}
			if err := os.Symlink(target, filepath.Join(dir, family+"tables"+verb)); err != nil {
				return "", fmt.Errorf("link programs of %s: %w", w.mode, err)
			}
		}
	}
	return dir, nil
}

// rollout waits until a DaemonSet has ready pods of its newest template on n nodes.
func (w *world) rollout(ctx context.Context, name string, n int) error {
	return within(ctx, 3*time.Minute, func() error {
		for _, p := range w.kubelets {
			if err := p.Err(); err != nil {
				return err
			}
		}
		d, err := w.cluster.Client().AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := d.Status; s.ObservedGeneration < d.Generation || int(s.DesiredNumberScheduled) != n || int(s.UpdatedNumberScheduled) != n || int(s.NumberAvailable) != n {
			return fmt.Errorf("DaemonSet %s: %d pods wanted, %d updated, %d available, not %d", name, s.DesiredNumberScheduled, s.UpdatedNumberScheduled, s.NumberAvailable, n)
		}
		return nil
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

// within calls f until it succeeds, and returns its last error when that takes longer than d.
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

func join[T netip.Prefix | netip.Addr](values []T) string {
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprint(v))
	}
	return strings.Join(all, ",")
}
