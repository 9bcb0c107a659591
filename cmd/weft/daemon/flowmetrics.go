package daemon

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/aggregator"
	"github.com/weft-proxy/weft/aggregator/server"
	"github.com/weft-proxy/weft/conntrack"
)

// kube-proxy's metrics without its label ip_family: one pass reads both families.
const (
	metricFlowSeconds = "kubeproxy_conntrack_reconciler_sync_duration_seconds"
	metricFlowDeleted = "kubeproxy_conntrack_reconciler_deleted_entries_total"
)

type measuredFlows struct {
	flows   aggregator.Flows
	seconds prometheus.Histogram
	deleted prometheus.Counter
}

func measureFlows(flows aggregator.Flows, reg prometheus.Registerer) *measuredFlows {
	m := &measuredFlows{
		flows: flows,
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: metricFlowSeconds,
			Help: "ReconcileConntrackFlowsLatency latency in seconds", Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}),
		deleted: prometheus.NewCounter(prometheus.CounterOpts{Name: metricFlowDeleted,
			Help: "Cumulative conntrack flows deleted by conntrack reconciler"}),
	}
	reg.MustRegister(m.seconds, m.deleted)
	return m
}

// Flush implements aggregator.Flows.
func (m *measuredFlows) Flush(ctx context.Context, stale []conntrack.Stale) (deleted int, err error) {
	return m.measure(func() (int, error) { return m.flows.Flush(ctx, stale) })
}

// Reconcile implements aggregator.Flows.
func (m *measuredFlows) Reconcile(ctx context.Context, live []conntrack.Destination) (deleted int, err error) {
	return m.measure(func() (int, error) { return m.flows.Reconcile(ctx, live) })
}

func (m *measuredFlows) measure(pass func() (int, error)) (deleted int, err error) {
	began := time.Now()
	deleted, err = pass()
	m.seconds.Observe(time.Since(began).Seconds())
	m.deleted.Add(float64(deleted))
	return deleted, err
}

// Entries deleted by DeleteFlows.
const metricPublisherFlows = "weft_flows_deleted_total"

type measuredTable struct {
	server.FlowTable
	deleted prometheus.Counter
}

func measureTable(table server.FlowTable, reg prometheus.Registerer) *measuredTable {
	m := &measuredTable{FlowTable: table, deleted: prometheus.NewCounter(prometheus.CounterOpts{
		Name: metricPublisherFlows, Help: "Conntrack entries that publishers had deleted, such as connections that network policies deny.",
	})}
	reg.MustRegister(m.deleted)
	return m
}

// Delete implements server.FlowTable.
func (m *measuredTable) Delete(ctx context.Context, entries []conntrack.Entry) (deleted int, err error) {
	deleted, err = m.FlowTable.Delete(ctx, entries)
	m.deleted.Add(float64(deleted))
	return deleted, err
}
