package services

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Names of the metrics.
const (
	metricEvents      = "weft_services_events_total"
	metricChanges     = "weft_services_changes_total"
	metricPublishes   = "weft_services_publishes_total"
	metricDuration    = "weft_services_publish_duration_seconds"
	metricServices    = "weft_services_services"
	metricEndpoints   = "weft_services_endpoints"
	metricQuarantined = "weft_services_quarantined"
	metricModel       = "weft_services_model_revision"
	metricRevision    = "weft_services_committed_revision"
	metricLatency     = "weft_services_event_to_commit_seconds"
)

// Outcomes of an update, as a label.
const (
	resultCommitted = "committed"
	resultRejected  = "rejected"
	resultFailed    = "failed"
)

// metrics are those of one frontend.
type metrics struct {
	events      *prometheus.CounterVec
	changes     prometheus.Counter
	publishes   *prometheus.CounterVec
	duration    prometheus.Histogram
	quarantined prometheus.Gauge
	model       prometheus.Gauge
	// latency observes each update that is committed, from the arrival of the
	// oldest event that it carries to its acknowledgement. What came before
	// everything was known counts from then.
	latency prometheus.Observer
	// proxy are those with kube-proxy's names.
	proxy *proxyMetrics
}

// newMetrics registers the metrics of a frontend.
func newMetrics(reg prometheus.Registerer, proxy *proxyMetrics, f *Frontend) (*metrics, error) {
	latency := prometheus.NewHistogram(prometheus.HistogramOpts{Name: metricLatency,
		Help:    "Time from the arrival of an event to the acknowledged commit that carries it; of an update the longest.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 20)})
	m := &metrics{
		latency: latency, proxy: proxy,
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricEvents,
			Help: "Events received from the source."}, []string{"kind"}),
		changes: prometheus.NewCounter(prometheus.CounterOpts{Name: metricChanges,
			Help: "Services whose outcome on this node really changed."}),
		publishes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricPublishes,
			Help: "Updates sent to the aggregator, by outcome."}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: metricDuration,
			Help:    "Time from sending an update to its acknowledgement.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}),
		quarantined: prometheus.NewGauge(prometheus.GaugeOpts{Name: metricQuarantined,
			Help: "Services that the aggregator refused and that are left out."}),
		model: prometheus.NewGauge(prometheus.GaugeOpts{Name: metricModel,
			Help: "Revision of the local model."}),
	}
	if reg == nil {
		return m, nil
	}
	var errs []error
	for _, c := range append(proxy.collectors(f.state.backlog),
		m.events, m.changes, m.publishes, m.duration, m.quarantined, m.model, latency,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricRevision, Help: "Revision of the commit that carries the last acknowledged update."},
			func() float64 { return float64(f.publisher.Status().Revision) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricServices, Help: "Services that are rendered."},
			func() float64 { n, _ := f.content.size(); return float64(n) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricEndpoints, Help: "Endpoint slots that are filled, over all addresses of all Services."},
			func() float64 { _, n := f.content.size(); return float64(n) }),
	) {
		errs = append(errs, reg.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}
