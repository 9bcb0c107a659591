package flows

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Names of the metrics.
const (
	metricFlows       = "weft_flows_flushed_total"
	metricFlowErrors  = "weft_flow_flush_errors_total"
	metricPurged      = "weft_affinity_purged_total"
	metricPurgeErrors = "weft_affinity_errors_total"
)

// Metrics counts the entries that were removed.
type Metrics struct {
	flows, flowErrors, purged, purgeErrors prometheus.Counter
}

// NewMetrics makes the metrics and registers them. If reg is nil, it registers
// nothing.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	var errs []error
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		if reg != nil {
			errs = append(errs, reg.Register(c))
		}
		return c
	}
	m := &Metrics{
		flows:       counter(metricFlows, "UDP conntrack entries removed after commits."),
		flowErrors:  counter(metricFlowErrors, "Failed attempts to remove UDP conntrack entries. Each is retried."),
		purged:      counter(metricPurged, "Entries of affinity maps removed because no rule makes them any more."),
		purgeErrors: counter(metricPurgeErrors, "Failed attempts to remove entries of affinity maps. Each is retried."),
	}
	return m, errors.Join(errs...)
}
