package policy

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/publish"
)

const metricPrefix = "weft_policy_"

const (
	metricChanges  = metricPrefix + "changes_total"
	metricPods     = metricPrefix + "pods"
	metricPolicies = metricPrefix + "policies"
	metricSets     = metricPrefix + "sets"
	metricMembers  = metricPrefix + "members"
	metricRejected = metricPrefix + "rejected"
)

type metrics struct {
	*publish.Metrics
	changes *prometheus.CounterVec
}

// reg may be nil.
func newMetrics(reg prometheus.Registerer, f *Frontend) (*metrics, error) {
	m := &metrics{
		Metrics: f.publisher.NewMetrics(metricPrefix, "Policies that apply to a pod of this node, by what became of them: wanted, in force, refused, left out."),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricChanges, Help: "Changes of what this node enforces: of its pods, of policies that apply to them, and of sets."}, []string{"kind"}),
	}
	number := func(of func(model.Stats) int) func() float64 {
		return func() float64 { return float64(of(read(f.state, (*model.Model).Stats))) }
	}
	m.Gauge(metricPods, "Pods of this node with an address of their own.", number(func(s model.Stats) int { return s.LocalPods }))
	m.Gauge(metricPolicies, "Policies that apply to a pod of this node.", number(func(s model.Stats) int { return s.ActivePolicies }))
	m.Gauge(metricSets, "Sets of pods that rules of these policies name, one for each selector.", number(func(s model.Stats) int { return s.Sets }))
	m.Gauge(metricMembers, "Members of all sets.", number(func(s model.Stats) int { return s.Members }))
	m.Gauge(metricRejected, "Policies that are refused, by the aggregator or because they cannot be rendered: they accept nothing.",
		func() float64 { return float64(len(f.publisher.Refused())) })
	others := []prometheus.Collector{f.drops, m.changes}
	if f.runtime != nil {
		others = append(others, f.runtime.metrics.collectors()...)
	}
	return m, m.Register(reg, others...)
}
