package policy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/policy/nri"
)

const (
	metricRuntimeConnected = "weft_policy_runtime_connected"
	metricRuntimeSandboxes = "weft_policy_runtime_sandboxes"
	metricRuntimeRequests  = "weft_policy_runtime_requests_total"
	metricRuntimeLate      = "weft_policy_runtime_late_total"
	metricRuntimeIsolation = "weft_policy_runtime_isolation_seconds"
)

type runtimeMetrics struct {
	numbers   []prometheus.Collector
	isolation prometheus.Histogram
}

func newRuntimeMetrics(stats func() nri.Stats) *runtimeMetrics {
	m := &runtimeMetrics{isolation: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: metricRuntimeIsolation, Help: "Time that a new pod waited for the commit of its policies, in seconds.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 11),
	})}
	gauge := func(name, help string, value func(nri.Stats) float64) {
		m.numbers = append(m.numbers, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(stats()) }))
	}
	counter := func(name, help string, value func(nri.Stats) float64) {
		m.numbers = append(m.numbers, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return value(stats()) }))
	}
	gauge(metricRuntimeConnected, "1 while the container runtime is connected and has reported its pods.", func(s nri.Stats) float64 {
		if s.Connected {
			return 1
		}
		return 0
	})
	gauge(metricRuntimeSandboxes, "Pods with an address that the container runtime has reported.", func(s nri.Stats) float64 { return float64(s.Sandboxes) })
	counter(metricRuntimeRequests, "Reports of the container runtime: pods that start, stop or are removed.", func(s nri.Stats) float64 { return float64(s.Requests) })
	counter(metricRuntimeLate, "Pods that started before a commit had their policies.", func(s nri.Stats) float64 { return float64(s.Late) })
	return m
}

func (m *runtimeMetrics) isolated(wait time.Duration) { m.isolation.Observe(wait.Seconds()) }

func (m *runtimeMetrics) collectors() []prometheus.Collector { return append(m.numbers, m.isolation) }
