package policy

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// shop has a policy for the pods app=db, and no pod.
const shop = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db, namespace: shop}
spec: {podSelector: {matchLabels: {app: db}}}
`

const dbPod = `apiVersion: v1
kind: Pod
metadata: {name: db, namespace: shop, uid: uid-db, labels: {app: db}}
spec: {nodeName: node-a, containers: [{name: db, image: db}]}
status: {phase: Running, podIPs: [{ip: 10.244.1.5}]}
`

// newRuntime starts a container runtime, and returns it with its socket.
func newRuntime(t *testing.T, pods ...*api.PodSandbox) (*adaptation.Adaptation, string) {
	t.Helper()
	report := func(ctx context.Context, send adaptation.SyncCB) error {
		_, err := send(ctx, pods, nil)
		return err
	}
	update := func(context.Context, []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) { return nil, nil }
	socket := filepath.Join(t.TempDir(), "nri.sock")
	r, err := adaptation.New("containerd", "2.2.0", report, update,
		adaptation.WithSocketPath(socket), adaptation.WithPluginPath(t.TempDir()), adaptation.WithPluginConfigPath(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r, socket
}

func sandboxOf(name, addr string) *api.PodSandbox {
	return &api.PodSandbox{Id: "sandbox-" + name, Name: name, Namespace: "shop", Uid: "uid-" + name, Pid: 1, Ips: []string{addr}, Labels: map[string]string{"app": "db"}}
}

// newRuntimeLab runs a frontend with a container runtime until the function that it returns
// is called.
func newRuntimeLab(t *testing.T, agg *publishtest.Aggregator, dir, socket string) (l *lab, stop func()) {
	t.Helper()
	l, stop = startOn(t, agg, dir, func(l *lab, cfg *Config) {
		l.reg = prometheus.NewPedanticRegistry()
		cfg.Events, cfg.Registerer, cfg.RuntimeSocket = l.events, l.reg, socket
	})
	await(t, "the first commit", func() bool { return l.Ready() == nil })
	return l, stop
}

// TestContainerRuntime isolates a pod before its containers start, and keeps it isolated
// while the runtime, the API or both know it.
//
// Policy behaviour: 49.
func TestContainerRuntime(t *testing.T) {
	const addr = "10.244.1.5"
	rt, socket := newRuntime(t)
	dir, agg := t.TempDir(), publishtest.New(t)
	(&lab{dir: dir}).write(t, "shop.yaml", shop)
	l, _ := newRuntimeLab(t, agg, dir, socket)

	rt.BlockPluginSync().Unblock() // The plugin receives events from here on.
	if err := rt.RunPodSandbox(t.Context(), &api.RunPodSandboxRequest{Pod: sandboxOf("db", addr)}); err != nil {
		t.Fatal(err)
	}
	if !l.has("ingress", addr) {
		t.Fatal("the containers start before the pod is isolated")
	}
	opened := false
	agg.Judge(func(elements map[string]string) []*weftv1.Violation {
		found := false
		for k := range elements {
			of := nametest.Parse(k)
			found = found || of.GetName() == "ingress" && of.GetKey() == addr
		}
		opened = opened || !found
		return nil
	})
	// A pod that the API reports beside it marks the point until which events are published.
	mark := strings.NewReplacer("{app: db}", "{app: db}", "db", "mark", addr, "10.244.1.6").Replace(dbPod)
	l.write(t, "db.yaml", dbPod)
	l.write(t, "mark.yaml", mark)
	await(t, "the pods of the API", func() bool { return l.has("ingress", "10.244.1.6") })
	l.write(t, "db.yaml", "")
	l.write(t, "mark.yaml", "")
	await(t, "the end of the pods of the API", func() bool { return !l.has("ingress", "10.244.1.6") })
	if opened || !l.has("ingress", addr) {
		t.Error("the pod was not isolated while it ran")
	}
	agg.Judge(nil)
	if err := rt.StopPodSandbox(t.Context(), &api.StopPodSandboxRequest{Pod: sandboxOf("db", addr)}); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the pod", func() bool { return !l.has("ingress", addr) })
	if got := l.events.text(); got != "" {
		t.Errorf("events %s", got)
	}
	for name, want := range map[string]float64{
		metricRuntimeConnected: 1, metricRuntimeSandboxes: 0, metricRuntimeRequests: 2, metricRuntimeLate: 0, metricRuntimeIsolation: 1,
	} {
		if got := valueOf(t, l.reg, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// valueOf returns the value of a metric without labels, or the number of observations of a
// histogram.
func valueOf(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	t.Errorf("metric %s not found", name)
	return -1
}

// TestRestartWithContainerRuntime starts with the pods that only the runtime knows: the
// first update has them.
func TestRestartWithContainerRuntime(t *testing.T) {
	const addr = "10.244.1.5"
	_, socket := newRuntime(t, sandboxOf("db", addr))
	dir, agg := t.TempDir(), publishtest.New(t)
	(&lab{dir: dir}).write(t, "shop.yaml", shop)
	for range 2 {
		l, stop := newRuntimeLab(t, agg, dir, socket)
		if !l.has("ingress", addr) {
			t.Error("the first update lacks the pod")
		}
		stop()
	}
}

// TestWithoutContainerRuntime publishes without the pods of a runtime that is not there.
func TestWithoutContainerRuntime(t *testing.T) {
	t.Parallel()
	dir, agg := t.TempDir(), publishtest.New(t)
	began := time.Now()
	newRuntimeLab(t, agg, dir, filepath.Join(t.TempDir(), "nri.sock"))
	if took := time.Since(began); took < runtimeTimeout {
		t.Errorf("the first update waited %s, want %s", took, runtimeTimeout)
	}
}

func TestCommits(t *testing.T) {
	var c commits
	closed := func(ch <-chan struct{}) bool {
		select {
		case <-ch:
			return true
		default:
			return false
		}
	}
	if !closed(c.wait()) {
		t.Error("waits for nothing")
	}
	c.arrive()
	first := c.wait()
	c.take()
	c.arrive()
	second := c.wait()
	c.answer()
	if !closed(first) || closed(second) {
		t.Error("the commit of the first change did not end the wait for it alone")
	}
	c.take()
	c.answer()
	if !closed(second) || len(c.waiters) != 0 {
		t.Error("the commit of the second change did not end the wait")
	}
}
