package services

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/loopback"
	"github.com/weft-proxy/weft/frontends/services/model"
	"github.com/weft-proxy/weft/frontends/testing/publishtest"
)

// TestKubeProxyMetrics follows the metrics with kube-proxy's names through commits
// and failures.
//
// Behaviour: 157, 159, 160, 161, 162, 164.
func TestKubeProxyMetrics(t *testing.T) {
	fake, clock := newFake(t), publishtest.NewClock()
	reg := prometheus.NewPedanticRegistry()
	src := newScript(many(2)...)
	f, _ := run(t, Config{Source: src, Socket: fake.Socket, Registerer: reg, Now: clock.Now})
	settled := func() bool { return f.Status().Published && f.Status().Pending.IsZero() }
	await(t, "the first commit", settled)
	first := seconds(clock.Now())
	clock.Move(10 * time.Second)
	src.deliver(many(3)...)
	await(t, "the second commit", func() bool { return fake.served() == all(3) && settled() })
	second := seconds(clock.Now())
	fake.Judge(func(map[string]string) []*weftv1.Violation {
		return []*weftv1.Violation{{Message: "no", Reason: weftv1.Violation_REASON_PERMISSION}}
	})
	clock.Move(10 * time.Second)
	src.deliver(many(4)[6:]...)
	await(t, "a refusal", func() bool { return testutil.ToFloat64(f.metrics.proxy.syncFailures.WithLabelValues("IPv6")) >= 1 })
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
	for _, family := range []string{"IPv4", "IPv6"} {
		if n := testutil.ToFloat64(f.metrics.proxy.syncFailures.WithLabelValues(family)); n < 1 {
			t.Errorf("%v failures of %s", n, family)
		}
		f.metrics.proxy.cleanupFailed()
	}
	publishtest.Equal(t, "failed cleanups", testutil.ToFloat64(f.metrics.proxy.cleanupFailures.WithLabelValues("IPv6")), 2)
	// What fails is a sync, too.
	if n := histogram(t, reg, metricSync, "IPv6").count; n < 3 {
		t.Errorf("%d syncs", n)
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
	must(t, err)
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
		publishtest.Equal(t, tt.what, l.sum, tt.want)
	}
	publishtest.Equal(t, fmt.Sprintf("left over: %v", l.of), len(l.of), 0)
	reg := prometheus.NewPedanticRegistry()
	m := newProxyMetrics(publish.NewBacklog(nil), [model.NumFamilies]bool{model.IPv4: true}, loopback.New(loopback.Config{}))
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
