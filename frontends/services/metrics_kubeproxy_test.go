package services

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/model"
)

var both = [model.NumFamilies]bool{true, true}

// TestKubeProxyMetrics follows the metrics with kube-proxy's names through commits
// and failures.
//
// Behaviour: 157, 159, 160, 161, 162, 164.
func TestKubeProxyMetrics(t *testing.T) {
	fake, clock := newFake(t), newHands()
	reg := prometheus.NewPedanticRegistry()
	src := newScript(many(2)...)
	f, _ := run(t, Config{Source: src, Socket: fake.Socket, Registerer: reg, Now: clock.Now})
	settled := func() bool { return f.Status().Published && f.Status().Pending.IsZero() }
	await(t, "the first commit", settled)
	first := seconds(clock.Now())
	clock.turn(10 * time.Second)
	src.deliver(many(3)...)
	await(t, "the second commit", func() bool { return fake.served() == all(3) && settled() })
	second := seconds(clock.Now())
	fake.Judge(func(map[string]string) []*weftv1.Violation {
		return []*weftv1.Violation{{Message: "no", Reason: weftv1.Violation_REASON_PERMISSION}}
	})
	clock.turn(10 * time.Second)
	src.deliver(many(4)[6:]...)
	await(t, "a refusal", func() bool { return testutil.ToFloat64(f.metrics.proxy.syncFailures.WithLabelValues("IPv4")) >= 1 })
	if first == second {
		t.Fatal("the clock stands still")
	}
	want := fmt.Sprintf(`
		# HELP kubeproxy_sync_proxy_rules_last_timestamp_seconds The last time proxy rules were successfully synced
		# TYPE kubeproxy_sync_proxy_rules_last_timestamp_seconds gauge
		kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} %[1]v
		kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv6"} %[1]v
		# HELP kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds The last time a sync of proxy rules was queued
		# TYPE kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds gauge
		kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} %[2]v
		kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv6"} %[2]v
		# HELP kubeproxy_sync_proxy_rules_service_changes_pending Pending proxy rules Service changes
		# TYPE kubeproxy_sync_proxy_rules_service_changes_pending gauge
		kubeproxy_sync_proxy_rules_service_changes_pending 1
		# HELP kubeproxy_sync_proxy_rules_endpoint_changes_pending Pending proxy rules Endpoint changes
		# TYPE kubeproxy_sync_proxy_rules_endpoint_changes_pending gauge
		kubeproxy_sync_proxy_rules_endpoint_changes_pending 1
		# HELP kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total Cumulative proxy nftables cleanup failures
		# TYPE kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total counter
		kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total{ip_family="IPv4"} 0
		kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total{ip_family="IPv6"} 0
		# HELP kubeproxy_sync_proxy_rules_no_local_endpoints_total Number of services with a Local traffic policy and no endpoints
		# TYPE kubeproxy_sync_proxy_rules_no_local_endpoints_total gauge
		kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"} 0
		kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="internal"} 0
		kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv6",traffic_policy="external"} 0
		kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv6",traffic_policy="internal"} 0
		# HELP kubernetes_feature_enabled This metric records the data about the stage and enablement of a k8s feature.
		# TYPE kubernetes_feature_enabled gauge
		kubernetes_feature_enabled{name="AllowServiceExternalIPs",stage=""} 1
	`, second, seconds(clock.Now()))
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), metricSynced, metricQueued, metricServicePending, metricEndpointPending,
		metricCleanupFailures, metricNoLocal, metricFeature); err != nil {
		t.Error(err)
	}
	// The first update is the whole fragment, and so are those after a failure.
	full, partial := histogram(t, reg, metricSyncFull, "IPv4"), histogram(t, reg, metricSyncPartial, "IPv6")
	if full.count < 1 || partial.count < 1 {
		t.Errorf("%d full and %d partial syncs", full.count, partial.count)
	}
	if bounds := full.bounds; len(bounds) != 15 || bounds[0] != 0.001 || bounds[14] != 16.384 {
		t.Errorf("buckets %v", bounds)
	}
}

// observed is what a histogram has.
type observed struct {
	count  uint64
	sum    float64
	bounds []float64
}

// histogram returns that of a family.
func histogram(t *testing.T, reg prometheus.Gatherer, name, family string) (out observed) {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, mf := range all {
		for _, m := range mf.GetMetric() {
			if mf.GetName() != name || !strings.Contains(fmt.Sprint(m.GetLabel()), `"`+family+`"`) {
				continue
			}
			h := m.GetHistogram()
			out.count, out.sum = h.GetSampleCount(), h.GetSampleSum()
			for _, b := range h.GetBucket() {
				out.bounds = append(out.bounds, b.GetUpperBound())
			}
			return out
		}
	}
	t.Fatalf("there is no %s of %s", name, family)
	return out
}

// endpoints are those of a port for the policies Cluster and Local.
func endpoints(cluster, local int) model.Backends {
	of := func(n int) model.Endpoints {
		var out []model.Endpoint
		for i := range n {
			out = append(out, model.Endpoint{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, 0, byte(i)}), 80)})
		}
		return model.MakeEndpoints(out...)
	}
	return model.Backends{Cluster: of(cluster), Local: of(local)}
}

// TestProgrammingLatency measures from the change in the cluster to the commit, in
// the family that changed.
//
// Behaviour: 158.
func TestProgrammingLatency(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := newProxyMetrics(publish.NewBacklog(nil), both, false)
	reg.MustRegister(m.programming)
	commit := time.Unix(1000, 0)
	m.programmed([]model.Trigger{
		{At: commit.Add(-400 * time.Millisecond)}, {At: commit.Add(-90 * time.Second)},
		{At: commit.Add(-2 * time.Second)}, {At: commit.Add(-2 * time.Second), Family: model.IPv6},
	}, commit)
	v4, v6 := histogram(t, reg, metricProgramming, "IPv4"), histogram(t, reg, metricProgramming, "IPv6")
	if v4.count != 3 || v6.count != 1 || v4.sum != 92.4 || v6.sum != 2 {
		t.Errorf("observed %d in %v s of IPv4 and %d in %v s of IPv6", v4.count, v4.sum, v6.count, v6.sum)
	}
	bounds := v4.bounds
	if len(bounds) != 81 || !slices.Equal(bounds[:5], []float64{0, 0.25, 0.5, 1, 2}) || !slices.Equal(bounds[60:64], []float64{58, 59, 60, 65}) || bounds[80] != 300 {
		t.Errorf("buckets %v", bounds)
	}
}

// TestNoLocalEndpoints counts ports as commits bring and take them.
//
// Behaviour: 162.
func TestNoLocalEndpoints(t *testing.T) {
	vip := [model.NumFamilies]netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00::1")}
	service := func(internalLocal, externalLocal bool, v4, v6 model.Backends) *model.Service {
		p := model.Port{Backends: [model.NumFamilies]model.Backends{v4, v6}}
		return &model.Service{ClusterIPs: vip, InternalLocal: internalLocal, ExternalLocal: externalLocal, Ports: []model.Port{p, p}}
	}
	l := newNoLocalEndpoints()
	key := model.Key{Name: "web"}
	for _, tt := range []struct {
		what string
		now  *model.Service
		want missing
	}{
		{"policy Cluster", service(false, false, endpoints(3, 0), endpoints(3, 0)), missing{}},
		{"both policies, nothing local in one family", service(true, true, endpoints(3, 0), endpoints(3, 1)), missing{internal: {2, 0}, external: {2, 0}}},
		{"one policy", service(false, true, endpoints(3, 0), endpoints(1, 0)), missing{external: {2, 2}}},
		{"no endpoints anywhere", service(true, true, endpoints(0, 0), endpoints(0, 0)), missing{}},
		{"internal", service(true, false, endpoints(1, 0), endpoints(0, 0)), missing{internal: {2, 0}}},
		{"gone", nil, missing{}},
	} {
		l.apply([]model.Change{{Name: key, New: tt.now}})
		if l.sum != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, l.sum, tt.want)
		}
	}
	if len(l.of) != 0 {
		t.Errorf("left over: %v", l.of)
	}
	reg := prometheus.NewPedanticRegistry()
	m := newProxyMetrics(publish.NewBacklog(nil), [model.NumFamilies]bool{model.IPv4: true}, true)
	reg.MustRegister(m.noLocalTotal)
	m.noLocal(&missing{internal: {2, 7}, external: {3, 7}})
	want := `
		# HELP kubeproxy_sync_proxy_rules_no_local_endpoints_total Number of services with a Local traffic policy and no endpoints
		# TYPE kubeproxy_sync_proxy_rules_no_local_endpoints_total gauge
		kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"} 3
		kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="internal"} 2
	`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), metricNoLocal); err != nil {
		t.Error(err)
	}
}

// TestSyncMetricsOfFailures counts what got no good answer.
//
// Behaviour: 157, 161.
func TestSyncMetricsOfFailures(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := newProxyMetrics(publish.NewBacklog(nil), both, true)
	reg.MustRegister(m.all...)
	m.updated(true, time.Second, time.Unix(1000, 0), errors.New("refused"))
	m.cleanupFailed()
	if n := histogram(t, reg, metricSync, "IPv6").count; n != 1 {
		t.Errorf("%d syncs", n)
	}
	want := `
		# HELP kubeproxy_sync_proxy_rules_nftables_sync_failures_total Cumulative proxy nftables sync failures
		# TYPE kubeproxy_sync_proxy_rules_nftables_sync_failures_total counter
		kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family="IPv4"} 1
		kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family="IPv6"} 1
		# HELP kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total Cumulative proxy nftables cleanup failures
		# TYPE kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total counter
		kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total{ip_family="IPv4"} 1
		kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total{ip_family="IPv6"} 1
	`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), metricSynced, metricSyncFailures, metricCleanupFailures); err != nil {
		t.Error(err)
	}
}
