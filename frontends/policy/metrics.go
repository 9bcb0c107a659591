package policy

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/publish"
)

// Names of the metrics.
const (
	metricEvents    = "weft_policy_events_total"
	metricChanges   = "weft_policy_changes_total"
	metricPublishes = "weft_policy_publishes_total"
	metricDuration  = "weft_policy_publish_duration_seconds"
	metricLatency   = "weft_policy_event_to_commit_seconds"
	metricRevision  = "weft_policy_committed_revision"
	metricPods      = "weft_policy_pods"
	metricPolicies  = "weft_policy_policies"
	metricSets      = "weft_policy_sets"
	metricMembers   = "weft_policy_members"
	metricRejected  = "weft_policy_rejected"
	metricOutcomes  = "weft_policy_outcomes"
)

// The values of the label result.
const (
	resultCommitted = "committed"
	resultRejected  = "rejected"
	resultFailed    = "failed"
)

// metrics are those of one frontend.
type metrics struct {
	events    *prometheus.CounterVec
	changes   *prometheus.CounterVec
	publishes *prometheus.CounterVec
	duration  prometheus.Histogram
	// latency observes each change, from the arrival of its oldest event to the
	// acknowledgement of its last update. Events from before the first sync count from the
	// sync.
	latency prometheus.Observer
}

// newMetrics registers the metrics of a frontend, unless reg is nil.
func newMetrics(reg prometheus.Registerer, f *Frontend) (*metrics, error) {
	all := []prometheus.Collector{f.drops}
	gauge := func(name, help string, value func() float64) {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge(metricRevision, "Revision of the commit that carries the last acknowledged update.",
		func() float64 { return float64(f.publisher.Status().Revision) })
	gauge(metricPods, "Pods of this node with an address of their own.", func() float64 { return float64(f.state.stats().LocalPods) })
	gauge(metricPolicies, "Policies that apply to a pod of this node.", func() float64 { return float64(f.state.stats().ActivePolicies) })
	gauge(metricSets, "Sets of pods that rules of these policies name, one for each selector.", func() float64 { return float64(f.state.stats().Sets) })
	gauge(metricMembers, "Members of all sets.", func() float64 { return float64(f.state.stats().Members) })
	gauge(metricRejected, "Policies that are refused, by the aggregator or because they cannot be rendered: they accept nothing.",
		func() float64 { return float64(len(f.publisher.Refused())) })
	all = append(all, f.publisher.OutcomeGauges(metricOutcomes, "Policies that apply to a pod of this node, by what became of them: wanted, in force, refused, left out.")...)
	m := &metrics{
		latency: collect(&all, prometheus.NewHistogram(prometheus.HistogramOpts{Name: metricLatency,
			Help:    "Time from the arrival of the oldest event of a change to the acknowledged commit, in seconds.",
			Buckets: publish.LatencyBuckets})),
		events:    collect(&all, prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricEvents, Help: "Events received from the source."}, []string{"kind"})),
		changes:   collect(&all, prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricChanges, Help: "Changes of what this node enforces: of its pods, of policies that apply to them, and of sets."}, []string{"kind"})),
		publishes: collect(&all, prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricPublishes, Help: "Updates sent to the aggregator, by result."}, []string{"result"})),
		duration: collect(&all, prometheus.NewHistogram(prometheus.HistogramOpts{Name: metricDuration,
			Help:    "Time from sending an update to its acknowledgement, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)})),
	}
	if f.runtime != nil {
		all = append(all, f.runtime.metrics.collectors()...)
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
