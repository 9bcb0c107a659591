package policy

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/policy/render"
	"github.com/weft-proxy/weft/frontends/publish"
)

const (
	metricRechecked    = "weft_policy_rechecked_addresses"
	metricFlowsJudged  = "weft_policy_flows_judged_total"
	metricFlowsDeleted = "weft_policy_flows_deleted_total"
)

type flowMetrics struct{ judged, deleted prometheus.Counter }

// reg may be nil.
func newFlowMetrics(reg prometheus.Registerer, r *render.Renderer) (*flowMetrics, error) {
	rechecked := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricRechecked,
		Help: "Addresses whose established connections are judged packet by packet, because less is allowed to them than before. All addresses of a family count as one."},
		func() float64 { return float64(len(r.Rechecked())) })
	m := &flowMetrics{
		judged:  prometheus.NewCounter(prometheus.CounterOpts{Name: metricFlowsJudged, Help: "Connections of such addresses that were listed and judged."}),
		deleted: prometheus.NewCounter(prometheus.CounterOpts{Name: metricFlowsDeleted, Help: "Connections that policies deny and that were deleted from the connection tracking table."}),
	}
	return m, publish.Register(reg, rechecked, m.judged, m.deleted)
}
