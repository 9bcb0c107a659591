package readiness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

const (
	namespace = "default"
	service   = "web"
	// patience bounds a start, deadline a change.
	patience = 3 * time.Minute
	deadline = 30 * time.Second
)

type world struct {
	*cluster.World
	node    *lab.Node
	client  *lab.Pod
	weft    *lab.Process
	service *corev1.Service
	// a and b are the Service's pods.
	a, b *backend
}

// backend answers the readiness probes of a pod.
type backend struct {
	name string
	mu   sync.Mutex
	// failing probes fail; failed is when the first did, or zero
	failing bool
	failed  time.Time
}

// ServeHTTP answers a probe.
func (p *backend) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.failing {
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	if p.failed.IsZero() {
		p.failed = time.Now()
	}
}

func (p *backend) set(failing bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing, p.failed = failing, time.Time{}
}

// firstFailure returns when the kubelet saw the first failing probe, or zero.
func (p *backend) firstFailure() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newWorld stops everything with the test.
func newWorld(t *testing.T, ctx context.Context) *world {
	t.Helper()
	w := &world{a: &backend{name: "web-a"}, b: &backend{name: "web-b"}}
	var err error
	w.World, err = cluster.StartWorld(ctx, cluster.WorldConfig{
		Lab: lab.Config{Nodes: 1}, ControlPlane: program("controlplane"), Node: program("node"), Dir: runDir, LogDir: logDir,
	})
	must(t, err)
	t.Cleanup(func() {
		if w.weft != nil {
			err = w.weft.Stop(patience)
		}
		if err := errors.Join(err, w.Stop()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the logs are in %s", logDir)
		}
	})
	w.node = w.Lab.Nodes[0]
	w.client, err = w.node.NewPod("client")
	must(t, err)
	must(t, w.startPods(ctx, t))
	socket := filepath.Join(runDir, w.node.Name(), "kubelet", "pods-api", "pods-api.sock")
	w.weft, err = w.node.Start("weft", filepath.Join(logDir, "weft.log"), nil, program("weft"), "run",
		"--kubeconfig", w.Kubeconfig, "--hostname-override", w.node.Name(), "--cluster-cidr", lab.Join(lab.ClusterCIDRs()), "--kubelet-pods-socket", socket,
		"--socket", filepath.Join(runDir, "weft.sock"), "--state-dir", filepath.Join(runDir, "state"), "--metrics-bind-address", "127.0.0.1:10249", "--healthz-bind-address", "")
	must(t, err)
	must(t, lab.Within(ctx, patience, func() error {
		page, err := w.node.Get(ctx, "http://127.0.0.1:10249/readyz", time.Second)
		if err == nil && page.Status != http.StatusOK {
			err = errors.New(page.Body)
		}
		return err
	}))
	must(t, w.await(ctx, patience, http.StatusOK, 2))
	return w
}

// startPods creates the Service and its pods on the node, whose probes ask the backends.
func (w *world) startPods(ctx context.Context, t *testing.T) error {
	api := w.Cluster.Client().CoreV1()
	for i, p := range []*backend{w.a, w.b} {
		port := 9000 + i
		var listener net.Listener
		if err := w.node.Do(func() (err error) {
			listener, err = net.Listen("tcp", netip.AddrPortFrom(w.node.Addresses.V4, uint16(port)).String()) //nolint:gosec // two ports
			return err
		}); err != nil {
			return err
		}
		server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: map[string]string{"app": service}}, Spec: corev1.PodSpec{
			NodeName: w.node.Name(), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, TerminationGracePeriodSeconds: new(int64(0)),
			AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "web", Image: "nginx", ReadinessProbe: &corev1.Probe{
				PeriodSeconds: 1, FailureThreshold: 1,
				ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: w.node.Addresses.V4.String(), Port: intstr.FromInt(port)}},
			}}},
		}}
		if err := lab.Within(ctx, patience, func() error {
			_, err := api.Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		}); err != nil {
			return err
		}
	}
	var err error
	w.service, err = api.Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: service},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			Selector: map[string]string{"app": service}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}, metav1.CreateOptions{})
	return err
}

// health returns the answer to a load balancer.
func (w *world) health(ctx context.Context) (status, endpoints int, err error) {
	page, err := w.node.Get(ctx, fmt.Sprintf("http://%s", netip.AddrPortFrom(w.node.Addresses.V4, uint16(w.service.Spec.HealthCheckNodePort))), time.Second) //nolint:gosec // a port
	if err != nil {
		return 0, 0, err
	}
	endpoints, err = strconv.Atoi(page.Header.Get("X-Load-Balancing-Endpoint-Weight"))
	return page.Status, endpoints, err
}

// await waits for an answer to a load balancer.
func (w *world) await(ctx context.Context, limit time.Duration, status, endpoints int) error {
	return lab.Within(ctx, limit, func() error {
		s, n, err := w.health(ctx)
		if err == nil && (s != status || n != endpoints) {
			err = fmt.Errorf("the health check node port says %d with %d endpoints, want %d with %d", s, n, status, endpoints)
		}
		return err
	})
}

// poll is await without pauses.
func (w *world) poll(ctx context.Context, status, endpoints int) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for ctx.Err() == nil {
		if s, n, err := w.health(ctx); err == nil && s == status && n == endpoints {
			return nil
		}
	}
	return ctx.Err()
}

// pick returns the pod that answers a new connection to the ClusterIP.
func (w *world) pick(ctx context.Context) (string, error) {
	page, err := w.client.Get(ctx, "http://"+w.service.Spec.ClusterIP+"/hostname", time.Second)
	return page.Body, err
}
