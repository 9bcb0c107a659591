package services

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/publish"
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
	metricOutcomes    = "weft_services_outcomes"
)

// The values of the label result.
const (
	resultCommitted = "committed"
	resultRejected  = "rejected"
	resultFailed    = "failed"
)

// metrics are those of one frontend.
type metrics struct {
	events    func(kind string) prometheus.Counter
	changes   prometheus.Counter
	publishes *prometheus.CounterVec
	duration  prometheus.Histogram
	model     prometheus.Gauge
	// latency observes each committed update, from the arrival of the oldest event in it
	// to its acknowledgement. Events from before the first sync count from the sync.
	latency prometheus.Observer
	// proxy has the metrics of kube-proxy.
	proxy *proxyMetrics
}

// newMetrics registers the metrics of a frontend, unless reg is nil.
func newMetrics(reg prometheus.Registerer, proxy *proxyMetrics, f *Frontend) (*metrics, error) {
	all := append(proxy.all,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricRevision, Help: "Revision of the commit that carries the last acknowledged update."},
			func() float64 { return float64(f.publisher.Status().Revision) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricServices, Help: "Services that are rendered."},
			func() float64 { return float64(f.content.Services()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricEndpoints, Help: "Filled endpoint slots, over all addresses of all Services."},
			func() float64 { return float64(f.content.Elements()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricQuarantined, Help: "Services that are refused, by the aggregator or because they cannot be rendered: they do not work on this node."},
			func() float64 { return float64(len(f.publisher.Refused())) }))
	all = append(all, f.publisher.OutcomeGauges(metricOutcomes, "Services by what became of them: wanted, in force, refused, left out.")...)
	m := &metrics{
		proxy: proxy,
		latency: collect(&all, prometheus.NewHistogram(prometheus.HistogramOpts{Name: metricLatency,
			Help:    "Time from the arrival of the oldest event of an update to the acknowledged commit, in seconds.",
			Buckets: publish.LatencyBuckets})),
		events:    remembered(collect(&all, prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricEvents, Help: "Events received from the source."}, []string{"kind"})).WithLabelValues),
		changes:   collect(&all, prometheus.NewCounter(prometheus.CounterOpts{Name: metricChanges, Help: "Services that changed on this node."})),
		publishes: collect(&all, prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricPublishes, Help: "Updates sent to the aggregator, by result."}, []string{"result"})),
		duration: collect(&all, prometheus.NewHistogram(prometheus.HistogramOpts{Name: metricDuration,
			Help:    "Time from sending an update to its acknowledgement, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)})),
		model: collect(&all, prometheus.NewGauge(prometheus.GaugeOpts{Name: metricModel, Help: "Revision of the local model."})),
	}
	if f.traffic != nil {
		all = append(all, f.traffic)
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// collect appends a metric to those to register, and returns it.
func collect[C prometheus.Collector](all *[]prometheus.Collector, c C) C {
	*all = append(*all, c)
	return c
}
