package services

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/publish"
	"github.com/weft-proxy/weft/frontends/services/loopback"
	"github.com/weft-proxy/weft/frontends/services/model"
)

// kube-proxy's metric names. A sync is an update. One commit has both families, so most per-family metrics
// are equal.
const (
	// From rendering to the answer. Full updates are snapshots.
	metricSync        = "kubeproxy_sync_proxy_rules_duration_seconds"
	metricSyncFull    = "kubeproxy_sync_full_proxy_rules_duration_seconds"
	metricSyncPartial = "kubeproxy_sync_partial_proxy_rules_duration_seconds"
	metricSynced      = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"
	metricQueued      = "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds"
	// From the annotation endpoints.kubernetes.io/last-change-trigger-time to the acknowledged commit.
	metricProgramming = "kubeproxy_network_programming_duration_seconds"
	// An event is pending until its commit; in kube-proxy until the attempt.
	metricEndpointTotal   = "kubeproxy_sync_proxy_rules_endpoint_changes_total"
	metricEndpointPending = "kubeproxy_sync_proxy_rules_endpoint_changes_pending"
	metricServiceTotal    = "kubeproxy_sync_proxy_rules_service_changes_total"
	metricServicePending  = "kubeproxy_sync_proxy_rules_service_changes_pending"
	// Rejected or unanswered.
	metricSyncFailures    = "kubeproxy_sync_proxy_rules_nftables_sync_failures_total"
	metricCleanupFailures = "kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total"
	metricNoLocal         = "kubeproxy_sync_proxy_rules_no_local_endpoints_total"
	metricListeners       = "kubeproxy_nftables_localhost_nodeport_listeners"
	metricListenFailures  = "kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total"
	metricFeature         = "kubernetes_feature_enabled"
)

const allowExternalIPs = "AllowServiceExternalIPs"

type proxyMetrics struct {
	all []prometheus.Collector
	// values of ip_family; empty for a missing family
	families            [model.NumFamilies]string
	sync, full, partial *prometheus.HistogramVec
	synced, queued      *prometheus.GaugeVec
	programming         *prometheus.HistogramVec
	endpoints           prometheus.Counter
	services            prometheus.Counter
	syncFailures        *prometheus.CounterVec
	cleanupFailures     *prometheus.CounterVec
	noLocalTotal        *prometheus.GaugeVec
	shown               missing
	externalIPs         prometheus.Gauge
}

// programmingBuckets returns the buckets of kube-proxy.
func programmingBuckets() []float64 {
	out := append([]float64{0}, prometheus.LinearBuckets(0.25, 0.25, 2)...)
	out = append(out, prometheus.LinearBuckets(1, 1, 59)...)
	out = append(out, prometheus.LinearBuckets(60, 5, 12)...)
	return append(out, prometheus.LinearBuckets(120, 30, 7)...)
}

// b has the waiting events.
func newProxyMetrics(b *publish.Backlog, have [model.NumFamilies]bool, loopback *loopback.Proxy) *proxyMetrics {
	const family = "ip_family"
	var all []prometheus.Collector
	duration := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return collect(&all, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{family}))
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return collect(&all, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return collect(&all, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{family}))
	}
	pending := func(name, help, resource string) {
		collect(&all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(b.Length(resource)) }))
	}
	pending(metricServicePending, "Pending proxy rules Service changes", serviceEvents)
	pending(metricEndpointPending, "Pending proxy rules Endpoint changes", sliceEvents)
	buckets := prometheus.ExponentialBuckets(0.001, 2, 15)
	m := &proxyMetrics{
		sync:            duration(metricSync, "SyncProxyRules latency in seconds", buckets),
		full:            duration(metricSyncFull, "SyncProxyRules latency in seconds for full resyncs", buckets),
		partial:         duration(metricSyncPartial, "SyncProxyRules latency in seconds for partial resyncs", buckets),
		synced:          gauge(metricSynced, "The last time proxy rules were successfully synced", family),
		queued:          gauge(metricQueued, "The last time a sync of proxy rules was queued", family),
		programming:     duration(metricProgramming, "In Cluster Network Programming Latency in seconds", programmingBuckets()),
		endpoints:       collect(&all, prometheus.NewCounter(prometheus.CounterOpts{Name: metricEndpointTotal, Help: "Cumulative proxy rules Endpoint changes"})),
		services:        collect(&all, prometheus.NewCounter(prometheus.CounterOpts{Name: metricServiceTotal, Help: "Cumulative proxy rules Service changes"})),
		syncFailures:    counter(metricSyncFailures, "Cumulative proxy nftables sync failures"),
		cleanupFailures: counter(metricCleanupFailures, "Cumulative proxy nftables cleanup failures"),
		noLocalTotal:    gauge(metricNoLocal, "Number of services with a Local traffic policy and no endpoints", "traffic_policy", family),
	}
	for f := range have {
		if !have[f] {
			continue
		}
		name := model.Family(f).String()
		m.families[f] = name
		// A rate needs an initial zero.
		m.partial.WithLabelValues(name)
		m.syncFailures.WithLabelValues(name)
		m.cleanupFailures.WithLabelValues(name)
	}
	for f := range model.NumFamilies {
		if !loopback.Serves(f) {
			continue
		}
		labels := prometheus.Labels{family: f.String()}
		collect(&all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricListeners, ConstLabels: labels,
			Help: "Number of active localhost NodePort userspace proxy listeners."}, func() float64 { return float64(loopback.Open(f)) }))
		collect(&all, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: metricListenFailures, ConstLabels: labels,
			Help: "Number of localhost NodePort userspace proxy listener creation failures."}, func() float64 { return float64(loopback.Failures(f)) }))
	}
	m.noLocal(&missing{})
	// The empty stage means GA.
	m.externalIPs = gauge(metricFeature, "This metric records the data about the stage and enablement of a k8s feature.", "name", "stage").
		WithLabelValues(allowExternalIPs, "")
	m.all = all
	return m
}

func (m *proxyMetrics) each(f func(family string)) {
	for _, name := range m.families {
		if name != "" {
			f(name)
		}
	}
}

// queued means the events may cause a change.
func (m *proxyMetrics) events(services, endpoints int, queued bool, now time.Time) {
	m.services.Add(float64(services))
	m.endpoints.Add(float64(endpoints))
	if queued {
		m.each(func(f string) { m.queued.WithLabelValues(f).Set(seconds(now)) })
	}
}

func (m *proxyMetrics) updated(whole bool, took time.Duration, now time.Time, err error) {
	kind := m.partial
	if whole {
		kind = m.full
	}
	m.each(func(f string) {
		m.sync.WithLabelValues(f).Observe(took.Seconds())
		kind.WithLabelValues(f).Observe(took.Seconds())
		if err != nil {
			m.syncFailures.WithLabelValues(f).Inc()
			return
		}
		m.synced.WithLabelValues(f).Set(seconds(now))
	})
}

func (m *proxyMetrics) cleanupFailed() {
	m.each(func(f string) { m.cleanupFailures.WithLabelValues(f).Inc() })
}

func (m *proxyMetrics) programmed(triggers []model.Trigger, committed time.Time) {
	for _, t := range triggers {
		if name := m.families[t.Family]; name != "" {
			m.programming.WithLabelValues(name).Observe(committed.Sub(t.At).Seconds())
		}
	}
}

func (m *proxyMetrics) noLocal(sum *missing) {
	m.shown = *sum
	for f, name := range m.families {
		if name != "" {
			m.noLocalTotal.WithLabelValues("internal", name).Set(float64(sum[internal][f]))
			m.noLocalTotal.WithLabelValues("external", name).Set(float64(sum[external][f]))
		}
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
