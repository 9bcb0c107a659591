package policy

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/policy/render"
)

// Names of the metrics of flows.
const (
	metricRechecked    = "weft_policy_rechecked_addresses"
	metricFlowsJudged  = "weft_policy_flows_judged_total"
	metricFlowsDeleted = "weft_policy_flows_deleted_total"
)

// flowMetrics count the connections that are judged.
type flowMetrics struct{ judged, deleted prometheus.Counter }

// newFlowMetrics registers the metrics, unless reg is nil.
func newFlowMetrics(reg prometheus.Registerer, r *render.Renderer) (*flowMetrics, error) {
	var all []prometheus.Collector
	collect(&all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricRechecked,
		Help: "Addresses whose established connections are judged packet by packet, because less is allowed to them than before. All addresses of a family count as one."},
		func() float64 { return float64(len(r.Rechecked())) }))
	m := &flowMetrics{
		judged:  collect(&all, prometheus.NewCounter(prometheus.CounterOpts{Name: metricFlowsJudged, Help: "Connections of such addresses that were listed and judged."})),
		deleted: collect(&all, prometheus.NewCounter(prometheus.CounterOpts{Name: metricFlowsDeleted, Help: "Connections that policies deny and that were deleted from the connection tracking table."})),
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
