package publish

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric names, without a frontend's prefix.
const (
	MetricEvents    = "events_total"
	MetricPublishes = "publishes_total"
	MetricDuration  = "publish_duration_seconds"
	MetricLatency   = "event_to_commit_seconds"
	MetricRevision  = "committed_revision"
	MetricOutcomes  = "outcomes"
)

// Metrics are the metrics common to all frontends.
type Metrics struct {
	Events *prometheus.CounterVec
	// Latency observes the time from an update's oldest event to its acknowledgement. Events before the first
	// sync count from the sync.
	Latency prometheus.Observer

	duration                    prometheus.Histogram
	committed, rejected, failed prometheus.Counter
	all                         []prometheus.Collector
}

// in seconds
var latencyBuckets = []float64{
	1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, .1, .2, .5, 1, 2, 5, 10, 20, 50,
}

// NewMetrics returns metrics with a prefix such as "weft_policy_". outcomes is the help of the gauges by
// State.
func (p *Publisher[K, V]) NewMetrics(prefix, outcomes string) *Metrics {
	publishes := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + MetricPublishes, Help: "Updates sent to the aggregator, by result."}, []string{"result"})
	latency := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: prefix + MetricLatency, Buckets: latencyBuckets,
		Help: "Time from the arrival of the oldest event of an update to the acknowledged commit, in seconds.",
	})
	m := &Metrics{
		Events:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + MetricEvents, Help: "Events received from the source."}, []string{"kind"}),
		Latency: latency,
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: prefix + MetricDuration, Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
			Help: "Time from sending an update to its acknowledgement, in seconds.",
		}),
		committed: publishes.WithLabelValues("committed"), rejected: publishes.WithLabelValues("rejected"), failed: publishes.WithLabelValues("failed"),
	}
	m.all = []prometheus.Collector{publishes, latency, m.Events, m.duration}
	m.Gauge(prefix+MetricRevision, "Revision of the commit that carries the last acknowledged update.", func() float64 { return float64(p.Status().Revision) })
	for state := Wanted; state <= LeftOut; state++ {
		opts := prometheus.GaugeOpts{Name: prefix + MetricOutcomes, Help: outcomes, ConstLabels: prometheus.Labels{"state": state.String()}}
		m.all = append(m.all, prometheus.NewGaugeFunc(opts, func() float64 { return float64(p.count(state)) }))
	}
	return m
}

// Gauge adds a gauge.
func (m *Metrics) Gauge(name, help string, value func() float64) {
	m.all = append(m.all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// Sent counts an update.
func (m *Metrics) Sent(s *Sent) {
	switch {
	case s.Err == nil:
		m.committed.Inc()
		m.duration.Observe(s.Wait.Seconds())
	case s.Rejected():
		m.rejected.Inc()
	default:
		m.failed.Inc()
	}
}

// Register registers these and other metrics, unless reg is nil.
func (m *Metrics) Register(reg prometheus.Registerer, others ...prometheus.Collector) error {
	return Register(reg, append(others, m.all...)...)
}

// Register registers metrics, unless reg is nil.
func Register(reg prometheus.Registerer, all ...prometheus.Collector) error {
	if reg == nil {
		return nil
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

func (p *Publisher[K, V]) count(state State) (n int) {
	p.outcomes.mu.Lock()
	defer p.outcomes.mu.Unlock()
	for _, o := range p.outcomes.items {
		if o.State == state {
			n++
		}
	}
	return n
}
