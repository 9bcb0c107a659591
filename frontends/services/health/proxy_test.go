package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

var must = publishtest.Must

// clock is a time that the test sets, and since when something is pending.
type clock struct{ now, pending time.Time }

func newProxy(t *testing.T, c *clock, families [model.NumFamilies]bool, reg prometheus.Registerer) *Proxy {
	t.Helper()
	p, err := NewProxy(ProxyConfig{
		Families: families, Timeout: time.Minute, Registerer: reg,
		Pending: func() time.Time { return c.pending }, Published: func() error { return nil },
		Now: func() time.Time { return c.now },
	})
	must(t, err)
	return p
}

// get returns the answer of a handler.
func get(handler http.HandlerFunc) (int, string) {
	w := httptest.NewRecorder()
	handler(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Code, w.Body.String()
}

// TestHealthTurns goes through the life of a proxy: nothing in force, starting up, in time,
// late, recovered. A restart would help only if another part of the process fails.
//
// Behaviour: 125, 126, 127, 128.
func TestHealthTurns(t *testing.T) {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	c := &clock{now: start}
	p := newProxy(t, c, [model.NumFamilies]bool{true, true}, nil)
	check := func(what string, healthz, livez int) {
		t.Helper()
		if code, body := get(p.Healthz); code != healthz {
			t.Errorf("%s: /healthz is %d %s, want %d", what, code, body, healthz)
		}
		if code, body := get(p.Livez); code != livez {
			t.Errorf("%s: /livez is %d %s, want %d", what, code, body, livez)
		}
	}
	c.pending = start
	c.now = start.Add(time.Hour)
	unpublished := errors.New("nothing is published")
	p.cfg.Published = func() error { return unpublished }
	check("nothing in force", 503, 200)
	if _, body := get(p.Healthz); !strings.Contains(body, `"reason":"nothing is published"`) {
		t.Errorf("the answer does not say why: %s", body)
	}
	unpublished = nil
	check("starting up for an hour", 200, 200)
	unpublished = errors.New("nothing is published")
	p.Updated()
	c.pending = time.Time{}
	check("after the first commit", 200, 200)
	c.now = c.now.Add(24 * time.Hour)
	check("a quiet day later", 200, 200)
	c.pending = c.now
	c.now = c.now.Add(time.Minute - 1)
	check("just in time", 200, 200)
	c.now = c.now.Add(1)
	check("late", 503, 200)
	p.Updated()
	c.pending = time.Time{}
	check("recovered", 200, 200)
	p.SetEligible(false)
	check("a node that leaves", 503, 200)
	p.SetEligible(true)
	check("a node that stays", 200, 200)
	fail := errors.New("aggregator: stopped")
	p.Require(func() error { return fail })
	check("another part of the process", 503, 503)
	if _, body := get(p.Livez); !strings.Contains(body, `"reason":"aggregator: stopped"`) {
		t.Errorf("the answer does not say why: %s", body)
	}
	fail = nil
	check("all of it", 200, 200)
}

// TestHealthBody compares the answers with those that kube-proxy 1.36.3 gives, byte
// by byte.
//
// Behaviour: 127.
func TestHealthBody(t *testing.T) {
	updated := time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC)
	c := &clock{now: updated}
	p := newProxy(t, c, [model.NumFamilies]bool{true, true}, nil)
	const first = `{"lastUpdated":"2026-05-01T12:00:00.123456789Z","currentTime":"2026-05-01T12:00:00.123456789Z","nodeEligible":true,"healthy":true}`
	if _, body := get(p.Healthz); body != first {
		t.Errorf("starting up:\n%s\nwant\n%s", body, first)
	}
	p.Updated()
	c.now = updated.Add(10 * time.Second)
	for _, tt := range []struct {
		handler http.HandlerFunc
		pending time.Time
		want    string
	}{
		{p.Healthz, time.Time{}, `{"lastUpdated":"2026-05-01T12:00:10.123456789Z","currentTime":"2026-05-01T12:00:10.123456789Z","nodeEligible":true,"healthy":true,` +
			`"status":{"IPv4":{"lastUpdated":"2026-05-01T12:00:00.123456789Z","healthy":true},"IPv6":{"lastUpdated":"2026-05-01T12:00:00.123456789Z","healthy":true}}}`},
		{p.Livez, time.Time{}, `{"lastUpdated":"2026-05-01T12:00:10.123456789Z","currentTime":"2026-05-01T12:00:10.123456789Z","healthy":true,` +
			`"status":{"IPv4":{"lastUpdated":"2026-05-01T12:00:00.123456789Z","healthy":true},"IPv6":{"lastUpdated":"2026-05-01T12:00:00.123456789Z","healthy":true}}}`},
		{p.Healthz, updated.Add(-time.Hour), `{"lastUpdated":"2026-05-01T12:00:00.123456789Z","currentTime":"2026-05-01T12:00:10.123456789Z","nodeEligible":true,"healthy":false,` +
			`"status":{"IPv4":{"lastUpdated":"2026-05-01T12:00:00.123456789Z","healthy":false},"IPv6":{"lastUpdated":"2026-05-01T12:00:00.123456789Z","healthy":false}}}`},
	} {
		c.pending = tt.pending
		w := httptest.NewRecorder()
		tt.handler(w, httptest.NewRequest(http.MethodGet, "/", nil))
		publishtest.Equal(t, fmt.Sprintf("answer\n%s\nwant", w.Body), w.Body.String(), tt.want)
		if h := w.Header(); h.Get("Content-Type") != "application/json" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("headers %v", h)
		}
	}
	c.pending = time.Time{}
	single := newProxy(t, c, [model.NumFamilies]bool{model.IPv4: true}, nil)
	single.Updated()
	var h Health
	if _, body := get(single.Livez); json.Unmarshal([]byte(body), &h) != nil || fmt.Sprint(len(h.Status), h.Status["IPv4"].Healthy) != "1 true" {
		t.Errorf("on a node without IPv6: %s", body)
	}
}

// TestHealthMetrics counts the answers by their code.
//
// Behaviour: 163.
func TestHealthMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	c := &clock{now: time.Unix(1000, 0)}
	p := newProxy(t, c, [model.NumFamilies]bool{true, true}, reg)
	get(p.Healthz)
	get(p.Livez)
	p.SetEligible(false)
	get(p.Healthz)
	get(p.Healthz)
	want := `
		# HELP kubeproxy_proxy_healthz_total Cumulative proxy healthz HTTP status
		# TYPE kubeproxy_proxy_healthz_total counter
		kubeproxy_proxy_healthz_total{code="200"} 1
		kubeproxy_proxy_healthz_total{code="503"} 2
		# HELP kubeproxy_proxy_livez_total Cumulative proxy livez HTTP status
		# TYPE kubeproxy_proxy_livez_total counter
		kubeproxy_proxy_livez_total{code="200"} 1
	`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), metricHealthz, metricLivez); err != nil {
		t.Error(err)
	}
	if _, err := NewProxy(ProxyConfig{Registerer: reg}); err == nil {
		t.Error("metrics were registered twice without an error")
	}
}

// TestApplyLooksOnlyWherePortsDiffer: the number of endpoints changes with every
// commit, and who listens where does not.
func TestApplyLooksOnlyWherePortsDiffer(t *testing.T) {
	s := NewServers(ServersConfig{})
	other := set("web", 30080, 1)
	other.New.ClusterIPs[model.IPv6] = netip.Addr{}
	for _, tt := range []struct {
		name   string
		change []model.Change
		node   *model.Node
		looks  bool
	}{
		{"one comes", []model.Change{set("web", 30080, 1)}, nil, true},
		{"other endpoints", []model.Change{set("web", 30080, 7)}, nil, false},
		{"another Service without a port", []model.Change{set("none", 0, 7)}, nil, false},
		{"it goes", []model.Change{gone("none")}, nil, false},
		{"another port", []model.Change{set("web", 30081, 7)}, nil, true},
		{"another family", []model.Change{other}, nil, true},
		{"the node", nil, node, true},
	} {
		looks := s.change(tt.change, tt.node)
		publishtest.Equal(t, fmt.Sprintf("%s: whether it looks at the ports", tt.name), looks, tt.looks)
	}
}
