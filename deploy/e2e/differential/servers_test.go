package differential

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// TestServers asks both proxies' HTTP servers: health check node ports, and the proxy's own.
//
// Behaviour: 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 130.
func TestServers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	w := newWorld(t)
	w.run(t, ctx, config{name: "servers"})
	defer w.clear(t)
	shared := &blocks{number: map[string]int{}}
	web := service{name: "web", kind: corev1.ServiceTypeLoadBalancer, ingress: 1, endpoints: "web-1 web-2 web-3", change: policy(false, true)}
	r := newRun(w, check{services: []service{web}}, "servers", shared)
	number := 0
	apply := func(t *testing.T, do func(ctx context.Context, r *run) error) {
		t.Helper()
		number++
		if err := do(ctx, r); err != nil {
			t.Fatal(err)
		}
		if err := w.fence(ctx, "servers-"+strconv.Itoa(number), shared); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, put("web", nil))
	port := strconv.Itoa(int(r.object("web").Spec.HealthCheckNodePort))
	endpoints := func(list string) func(*testing.T) {
		return func(t *testing.T) {
			apply(t, put("web", func(s *service) { s.endpoints = list }))
			w.health(t, ctx, port)
		}
	}
	t.Run("health-two-local", func(t *testing.T) { w.health(t, ctx, port) })
	t.Run("health-none-local", endpoints("web-3"))
	t.Run("health-terminating", endpoints("web-1~ web-3"))
	t.Run("health-back", endpoints("web-1"))
	t.Run("health-closed", func(t *testing.T) {
		apply(t, put("web", func(s *service) { s.change = nil }))
		w.health(t, ctx, port)
	})
	t.Run("healthz", func(t *testing.T) { w.proxyHealth(t, ctx, http.StatusOK) })
	t.Run("healthz-node-leaves", func(t *testing.T) {
		w.taint(t, ctx, `[{"key":"ToBeDeletedByClusterAutoscaler","effect":"NoSchedule"}]`)
		w.proxyHealth(t, ctx, http.StatusServiceUnavailable)
		w.taint(t, ctx, `null`)
		w.proxyHealth(t, ctx, http.StatusOK)
	})
	t.Run("own-server", func(t *testing.T) {
		for _, path := range []string{"/healthz", "/proxyMode", "/metrics", "/configz", "/metrics/slis", "/flagz", "/statusz", "/nothing"} {
			bodies := path == "/healthz" || path == "/proxyMode"
			w.same(t, ctx, "host", "http://127.0.0.1:10249"+path, bodies)
		}
	})
}

// health compares the answers of a health check node port, on both families.
func (w *world) health(t *testing.T, ctx context.Context, port string) {
	t.Helper()
	for _, a := range w.weft.lab.Nodes[0].Addresses.All() {
		w.same(t, ctx, "outside", "http://"+net.JoinHostPort(a.String(), port)+"/any/path", true)
	}
}

// proxyHealth waits until both have the expected /healthz, and compares.
func (w *world) proxyHealth(t *testing.T, ctx context.Context, status int) {
	t.Helper()
	base := "http://" + w.weft.lab.Nodes[0].Addresses.V4.String() + ":10256"
	for _, s := range w.sides() {
		err := lab.Within(ctx, 5*time.Second, func() error {
			a, err := s.actors["outside"].Get(ctx, base+"/healthz", time.Second)
			if err == nil && a.Status != status {
				err = fmt.Errorf("status %d, want %d: %s", a.Status, status, a.Body)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: /healthz: %v", s.name, err)
		}
	}
	w.same(t, ctx, "outside", base+"/healthz", true)
	w.same(t, ctx, "outside", base+"/livez", true)
}

func (w *world) taint(t *testing.T, ctx context.Context, taints string) {
	t.Helper()
	patch := []byte(`{"spec":{"taints":` + taints + `}}`)
	if _, err := w.client().CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// moment matches times, which may differ.
var moment = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?[-+Z][^"]*)?`)

// same compares status, headers and, if bodies is set, bodies except for times. It waits for answers
// that lag behind a commit.
func (w *world) same(t *testing.T, ctx context.Context, from, url string, bodies bool) {
	t.Helper()
	var peer, other string
	_ = lab.Within(ctx, 3*time.Second, func() error {
		peer, other = w.peer.say(ctx, from, url, bodies), w.weft.say(ctx, from, url, bodies)
		if peer != other {
			return errors.New("not the same")
		}
		return nil
	})
	if peer != other {
		t.Errorf("GET %s: DIFFERENCE:\nkube-proxy: %s\nweft: %s", url, peer, other)
	}
}

func (s *side) say(ctx context.Context, from, url string, body bool) string {
	a, err := s.actors[from].Get(ctx, url, time.Second)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "connection refused"
	}
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%d", a.Status)
	if body {
		for _, h := range []string{"Content-Type", "X-Content-Type-Options", "X-Load-Balancing-Endpoint-Weight"} {
			text += fmt.Sprintf("\n%s: %s", h, a.Header.Get(h))
		}
		text += "\n" + moment.ReplaceAllString(a.Body, "TIME")
	}
	return text
}

// meaningless are metrics of kube-proxy without a meaning in weft: name and reason.
func meaningless() map[string]string {
	return map[string]string{
		"kubeproxy_iptables_ct_state_invalid_dropped_packets_total":     "iptables mode",
		"kubeproxy_iptables_localhost_nodeports_accepted_packets_total": "iptables mode",
	}
}

// TestMetrics: weft has kube-proxy's metrics for dashboards, with the same name, type and labels.
//
// Behaviour: 157, 159, 160, 161, 162, 163, 164.
func TestMetrics(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	w := newWorld(t)
	w.run(t, ctx, config{name: "metrics"})
	defer w.clear(t)
	if err := w.fence(ctx, "metrics", &blocks{number: map[string]int{}}); err != nil {
		t.Fatal(err)
	}
	// For the metrics that count requests.
	for _, s := range w.sides() {
		for _, path := range []string{"healthz", "livez"} {
			if _, err := s.actors["host"].Get(ctx, "http://127.0.0.1:10256/"+path, time.Second); err != nil {
				t.Error(err)
			}
		}
	}
	peer, other := w.peer.metrics(t, ctx), w.weft.metrics(t, ctx)
	for name, kind := range peer {
		if meaningless()[name] != "" || !strings.HasPrefix(name, "kubeproxy_") {
			continue
		}
		switch {
		case other[name] == "":
			t.Errorf("DIFFERENCE: weft has no metric %s", name)
		case other[name] != kind:
			t.Errorf("DIFFERENCE: metric %s: kube-proxy: %s; weft: %s", name, kind, other[name])
		}
	}
	if len(peer) == 0 {
		t.Error("kube-proxy has no metrics")
	}
}

// sample is a line of a metric with its labels.
var sample = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[^}]*\})? `)

var label = regexp.MustCompile(`([a-zA-Z_]+)="`)

// metrics returns the type and the names of labels by metric.
func (s *side) metrics(t *testing.T, ctx context.Context) map[string]string {
	t.Helper()
	a, err := s.actors["host"].Get(ctx, "http://127.0.0.1:10249/metrics", time.Second)
	if err != nil || a.Status != http.StatusOK {
		t.Fatalf("%s: get metrics: %d %v", s.name, a.Status, err)
	}
	kinds, all := map[string]string{}, map[string]string{}
	for line := range strings.Lines(a.Body) {
		if name, kind, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "# TYPE "), " "); ok && strings.HasPrefix(line, "# TYPE ") {
			kinds[name] = kind
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := m[1]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); kinds[base] == "histogram" {
				name = base
			}
		}
		var labels []string
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" {
				labels = append(labels, l[1])
			}
		}
		slices.Sort(labels)
		all[name] = strings.TrimSpace(kinds[name] + " " + strings.Join(labels, ","))
	}
	return all
}
