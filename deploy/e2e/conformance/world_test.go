package conformance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/conformance/balancer"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// world is all processes besides the specs.
type world struct {
	proxy string
	logs  string

	lab     *lab.Lab
	cluster *cluster.Cluster
	// one for each node
	kubelets, proxies []*daemon
	balancer          *task
	kubectlPath       string
}

type task struct {
	cancel context.CancelFunc
	done   chan error
}

func startTask(ctx context.Context, f func(context.Context) error) *task {
	ctx, cancel := context.WithCancel(ctx)
	t := &task{cancel: cancel, done: make(chan error, 1)}
	go func() { t.done <- f(ctx) }()
	return t
}

func (t *task) stop() error {
	t.cancel()
	return <-t.done
}

// balancerRanges are benchmark and documentation prefixes for load balancer addresses that specs do not
// use.
func balancerRanges() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("198.18.0.0/24"), netip.MustParsePrefix("2001:db8::/64")}
}

// newWorld waits until everything is ready, and stops it with the test.
func newWorld(t *testing.T, ctx context.Context, proxy, name string) *world {
	t.Helper()
	w := &world{proxy: proxy, logs: filepath.Join(logDir, name)}
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
	if err := errors.Join(os.RemoveAll(w.logs), os.RemoveAll(runDir)); err != nil {
		return fmt.Errorf("clear directories: %w", err)
	}
	for _, dir := range []string{w.logs, runDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	var err error
	if w.lab, err = lab.New(lab.Config{Nodes: nodes(), Routed: cluster.ServiceCIDRs()}); err != nil {
		return err
	}
	w.cluster, err = cluster.Start(ctx, cluster.Config{
		Binary: program("controlplane"), Dir: runDir, LogDir: w.logs, Host: w.lab.Control, Full: true,
	})
	if err != nil {
		return err
	}
	if err := w.cluster.WriteKubeconfig(w.kubeconfig(), w.cluster.Admin().BearerToken); err != nil {
		return err
	}
	if w.kubectlPath, err = cluster.LinkKubectl(program("controlplane"), runDir); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{w.createNodes, w.startKubelets, w.startProxies, w.startBalancer, w.cluster.CreateDNS, w.ready} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) kubeconfig() string { return filepath.Join(runDir, "admin.kubeconfig") }

func (w *world) kubectl(ctx context.Context, args ...string) error {
	_, err := w.lab.Control.Run(ctx, w.kubectlPath, append([]string{"--kubeconfig", w.kubeconfig()}, args...)...)
	return err
}

// createNodes writes Node objects with their pods' prefixes, which a cloud's controller would choose.
// The kubelets write the rest.
func (w *world) createNodes(ctx context.Context) error {
	for _, n := range w.lab.Nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name(), Labels: w.labels(n)}}
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

// There are three zones.
func (w *world) labels(n *lab.Node) map[string]string {
	for i, other := range w.lab.Nodes {
		if other == n {
			return map[string]string{
				corev1.LabelHostname:       n.Name(),
				corev1.LabelTopologyRegion: "region",
				corev1.LabelTopologyZone:   "zone-" + string(rune('a'+i%3)),
			}
		}
	}
	return nil
}

func (w *world) startKubelets(ctx context.Context) error {
	for _, n := range w.lab.Nodes {
		var labels []string
		for key, value := range w.labels(n) {
			// The kubelet sets the host name itself.
			if key != corev1.LabelHostname {
				labels = append(labels, key+"="+value)
			}
		}
		d := w.daemon(n.Namespace, n.Name()+"-kubelet",
			program("node"), "kubelet", "--name", n.Name(), "--node-ips", join(n.Addresses.All()),
			"--kubeconfig", w.kubeconfig(), "--root", filepath.Join(runDir, n.Name()),
			"--labels", strings.Join(labels, ","), "--cluster-dns", cluster.DNSAddresses()[0].String())
		w.kubelets = append(w.kubelets, d)
		if err := d.start(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) daemon(ns *lab.Namespace, name string, argv ...string) *daemon {
	return &daemon{namespace: ns, name: name, log: filepath.Join(w.logs, name+".log"), argv: argv}
}

func (w *world) startBalancer(ctx context.Context) error {
	log, err := os.Create(filepath.Join(w.logs, "balancer.log"))
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	b, err := balancer.New(balancer.Config{
		Client: w.cluster.Client(), Ranges: balancerRanges(), Route: w.route, Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return errors.Join(err, log.Close())
	}
	w.balancer = startTask(ctx, func(ctx context.Context) error { return errors.Join(b.Run(ctx), log.Close()) })
	return nil
}

// route routes an address to nodes.
func (w *world) route(addr netip.Addr, names []string) error {
	var nodes []*lab.Node
	for _, n := range w.lab.Nodes {
		for _, name := range names {
			if n.Name() == name {
				nodes = append(nodes, n)
			}
		}
	}
	return w.lab.Balance(addr, nodes)
}

func (w *world) stop() error {
	var errs []error
	if w.balancer != nil {
		errs = append(errs, w.balancer.stop())
	}
	for _, d := range append(append([]*daemon{}, w.proxies...), w.kubelets...) {
		errs = append(errs, d.unexpected())
	}
	errs = append(errs, stopAll(w.proxies), stopAll(w.kubelets))
	if w.cluster != nil {
		errs = append(errs, w.cluster.Stop())
	}
	if w.lab != nil {
		w.lab.Close()
	}
	return errors.Join(errs...)
}
