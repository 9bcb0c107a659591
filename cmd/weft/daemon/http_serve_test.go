package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
	svchealth "github.com/weft-proxy/weft/frontends/services/health"
)

// nodeRecorder keeps events of the Node.
type nodeRecorder struct {
	mu     sync.Mutex
	events []string
}

func (r *nodeRecorder) Node(kind, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, kind+" "+reason+" "+message)
}

func (r *nodeRecorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.events, "\n")
}

// page returns the answer of a handler.
func page(h http.Handler, path string) (int, string, http.Header) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String(), w.Header()
}

// monitorOf returns a monitor with one condition.
func monitorOf(t *testing.T, check func() error) *conditions.Monitor {
	t.Helper()
	m, err := conditions.NewMonitor(conditions.Config{Conditions: []conditions.Condition{{Name: conditions.Aggregator, NotReady: check}}, Registerer: prometheus.NewRegistry(), Now: time.Now})
	must(t, err)
	return m
}

// TestMetricsPages asks for everything that kube-proxy has on the address of its
// metrics.
//
// Behaviour: 130.
func TestMetricsPages(t *testing.T) {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	var http httpSettings
	http.add(flags, VerbRun)
	var bad error
	healthy := func() error { return bad }
	e := httpServers{flags: flags, version: "v1", healthy: healthy, monitor: monitorOf(t, healthy)}
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "weft_test_total", Help: "Test."}))
	h := e.metricsHandler(reg)
	for _, tt := range []struct {
		path, kind string
		status     int
		want       []string
	}{
		{"/metrics", "text/plain", 200, []string{"weft_test_total 0"}},
		{"/healthz", "text/plain; charset=utf-8", 200, []string{"ok"}},
		{"/healthz?verbose", "text/plain; charset=utf-8", 200, []string{"[+]ping ok\n[+]weft ok\nhealthz check passed\n"}},
		{"/proxyMode", "text/plain; charset=utf-8", 200, []string{"nftables"}},
		{"/metrics/slis", "text/plain", 200, []string{`kubernetes_healthcheck{name="ping",type="healthz"} 1`, `kubernetes_healthchecks_total{name="weft",status="success",type="healthz"} 2`}},
		{"/configz", "application/json", 200, []string{`{"weft":{`, `"metrics-bind-address":"127.0.0.1:10249"`}},
		{"/flagz", "text/plain; charset=utf-8", 200, []string{"\nweft flagz\nWarning: ", "\nhealthz-bind-address=0.0.0.0:10256\n"}},
		{"/statusz", "text/plain; charset=utf-8", 200, []string{"\nweft statusz\n", "Up: 0 hr 00 min", "Binary version: v1", "/configz"}},
		{"/debug/pprof/", "", 404, nil},
		{"/other", "", 404, nil},
	} {
		code, body, header := page(h, tt.path)
		if code != tt.status || !strings.HasPrefix(header.Get("Content-Type"), tt.kind) {
			t.Errorf("%s: %d %s", tt.path, code, header)
		}
		for _, want := range tt.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q in %q", tt.path, want, body)
			}
		}
	}
	bad = errors.New("stopped")
	if code, body, _ := page(h, "/healthz"); code != 500 || body != "[+]ping ok\n[-]weft failed: stopped\nhealthz check failed\n" {
		t.Errorf("/healthz is %d %q", code, body)
	}
	e.profiling, e.configuration = true, map[string]string{"mode": "nftables"}
	bad = nil
	h = e.metricsHandler(reg)
	if code, _, _ := page(h, "/debug/pprof/cmdline"); code != 200 {
		t.Errorf("/debug/pprof/cmdline is %d with profiling", code)
	}
	_, body, _ := page(h, "/configz")
	var got map[string]map[string]string
	if err := json.Unmarshal([]byte(body), &got); err != nil || got["kubeproxy.config.k8s.io"]["mode"] != "nftables" {
		t.Errorf("/configz is %s (%v)", body, err)
	}
}

// TestHealthzOfProcess has the aggregator's state in the answers of the frontend,
// and /readyz apart.
//
// Behaviour: 125, 126.
func TestHealthzOfProcess(t *testing.T) {
	proxy, err := svchealth.NewProxy(svchealth.ProxyConfig{
		Timeout: time.Minute, Pending: func() time.Time { return time.Time{} }, Published: func() error { return nil }, Now: time.Now,
	})
	must(t, err)
	var bad error
	e := httpServers{proxy: proxy, healthy: func() error { return bad }, monitor: monitorOf(t, func() error { return errors.New("a publisher is missing") })}
	h := e.healthHandler()
	check := func(what string, healthz, livez int) {
		t.Helper()
		for path, want := range map[string]int{"/healthz": healthz, "/livez": livez, "/readyz": 503, "/any": 404} {
			if code, body, _ := page(h, path); code != want {
				t.Errorf("%s: %s is %d %s, want %d", what, path, code, body, want)
			}
		}
	}
	check("starting up", 200, 200)
	bad = errors.New("aggregator: stopped")
	check("without an aggregator", 503, 503)
	bad = nil
	proxy.SetEligible(false)
	check("a node that leaves", 503, 200)
}

// serving runs the servers until the test ends.
func serving(t *testing.T, e *httpServers) (ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	g, gctx := errgroup.WithContext(ctx)
	e.run(gctx, g, prometheus.NewRegistry())
	done := make(chan error, 1)
	stopped := make(chan struct{})
	go func() { defer close(stopped); done <- g.Wait() }()
	t.Cleanup(func() { cancel(); <-stopped })
	return done
}

// TestServerIsTriedAgain has another process on the address of /healthz at first.
//
// Behaviour: 129, 165.
func TestServerIsTriedAgain(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := other.Addr().String()
	var events nodeRecorder
	failing := &serverErrors{}
	ended := serving(t, &httpServers{httpSettings: httpSettings{healthz: address}, healthy: func() error { return nil }, events: &events, errors: failing, retry: 10 * time.Millisecond})
	aggregatortest.Eventually(t, "the event", func() bool { return strings.Contains(events.String(), "Warning FailedToStartProxierHealthcheck") })
	if err := failing.err(); err == nil || !strings.HasPrefix(err.Error(), "--healthz-bind-address: ") {
		t.Errorf("the server's error is %v", err)
	}
	must(t, other.Close())
	aggregatortest.Eventually(t, "an answer", func() bool {
		resp, err := http.Get("http://" + address + "/livez")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode == 200 && strings.Contains(string(b), `"healthy":true`)
	})
	if err := failing.err(); err != nil {
		t.Errorf("the server runs, and its error is %v", err)
	}
	if got := events.String(); strings.Count(got, "\n") != 0 {
		t.Errorf("events:\n%s", got)
	}
	select {
	case err := <-ended:
		t.Errorf("the servers ended with %v", err)
	default:
	}
}

// TestHardFail ends the daemon when a server fails, at the start and later.
//
// Behaviour: 129, 165.
func TestHardFail(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	e := &httpServers{httpSettings: httpSettings{metrics: other.Addr().String(), hardFail: true}, healthy: func() error { return nil }}
	if _, err := e.listen(t.Context()); err == nil || !strings.Contains(err.Error(), "--metrics-bind-address: ") {
		t.Errorf("a taken address: %v", err)
	}
	must(t, other.Close())
	var events nodeRecorder
	e.events = &events
	if e.ports, err = e.listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := e.ports[flagMetrics]
	ended := serving(t, e)
	aggregatortest.Eventually(t, "the server", func() bool {
		resp, err := http.Get("http://" + e.metrics + "/proxyMode")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil
	})
	must(t, l.Close())
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "serve http") {
		t.Errorf("the daemon ended with %v", err)
	}
	if !strings.Contains(events.String(), "Warning FailedToStartMetricServer") {
		t.Errorf("events:\n%s", events.String())
	}
}
