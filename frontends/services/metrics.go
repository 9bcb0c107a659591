package services

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/publish"
)

const metricPrefix = "weft_services_"

// Metric names in addition to package publish.
const (
	metricChanges     = metricPrefix + "changes_total"
	metricServices    = metricPrefix + "services"
	metricEndpoints   = metricPrefix + "endpoints"
	metricQuarantined = metricPrefix + "quarantined"
	metricModel       = metricPrefix + "model_revision"
	metricKubelet     = metricPrefix + "kubelet_connected"
	metricHeldOut     = metricPrefix + "held_out_endpoints"
)

type metrics struct {
	*publish.Metrics
	changes prometheus.Counter
	model   prometheus.Gauge
	proxy   *proxyMetrics
}

func newMetrics(reg prometheus.Registerer, proxy *proxyMetrics, f *Frontend) (*metrics, error) {
	m := &metrics{
		Metrics: f.publisher.NewMetrics(metricPrefix, "Services by what became of them: wanted, in force, refused, left out."),
		changes: prometheus.NewCounter(prometheus.CounterOpts{Name: metricChanges, Help: "Services that changed on this node."}),
		model:   prometheus.NewGauge(prometheus.GaugeOpts{Name: metricModel, Help: "Revision of the local model."}),
		proxy:   proxy,
	}
	m.Gauge(metricServices, "Services that are rendered.", func() float64 { return float64(f.content.Services()) })
	m.Gauge(metricEndpoints, "Filled endpoint slots, over all addresses of all Services.", func() float64 { return float64(f.content.Elements()) })
	m.Gauge(metricQuarantined, "Services that are refused, by the aggregator or because they cannot be rendered: they do not work on this node.",
		func() float64 { return float64(len(f.publisher.Refused())) })
	if f.kubelet != nil {
		m.Gauge(metricKubelet, "1 while the kubelet's Pods API reports the readiness of this node's pods, 0 while the API server alone does.", func() float64 {
			if f.kubelet.Err() == nil {
				return 1
			}
			return 0
		})
		m.Gauge(metricHeldOut, "Endpoints of EndpointSlices that are ready or serving there, and not at the kubelet.", func() float64 { return float64(f.state.heldOut()) })
	}
	others := append(proxy.all, m.changes, m.model)
	if f.traffic != nil {
		others = append(others, f.traffic)
	}
	return m, m.Register(reg, others...)
}

func collect[C prometheus.Collector](all *[]prometheus.Collector, c C) C {
	*all = append(*all, c)
	return c
}
