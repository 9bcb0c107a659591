package policy

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/testing/nametest"
	"github.com/weft-proxy/weft/frontends/testing/nritest"
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

// podLike is the manifest of a pod like db with another name and address.
func podLike(name, address string) string {
	return strings.NewReplacer("name: db,", "name: "+name+",", "uid-db", "uid-"+name, "10.244.1.5", address).Replace(dbPod)
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
	rt := nritest.New(t)
	rt.Start(t)
	dir, agg := t.TempDir(), publishtest.New(t)
	(&lab{dir: dir}).write(t, "shop.yaml", shop)
	l, _ := newRuntimeLab(t, agg, dir, rt.Socket)

	rt.RunPod(t, nritest.Pod("db", addr))
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
	l.write(t, "db.yaml", dbPod)
	l.write(t, "mark.yaml", podLike("mark", "10.244.1.6"))
	await(t, "the pods of the API", func() bool { return l.has("ingress", "10.244.1.6") })
	l.write(t, "db.yaml", "")
	l.write(t, "mark.yaml", "")
	await(t, "the end of the pods of the API", func() bool { return !l.has("ingress", "10.244.1.6") })
	if opened || !l.has("ingress", addr) {
		t.Error("the pod was not isolated while it ran")
	}
	agg.Judge(nil)
	rt.StopPod(t, nritest.Pod("db", addr))
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
	must(t, err)
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
	rt := nritest.New(t)
	rt.Start(t, nritest.Pod("db", addr))
	dir, agg := t.TempDir(), publishtest.New(t)
	(&lab{dir: dir}).write(t, "shop.yaml", shop)
	for range 2 {
		l, stop := newRuntimeLab(t, agg, dir, rt.Socket)
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
