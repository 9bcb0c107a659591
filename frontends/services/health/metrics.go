package health

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Names of the metrics, which are those of kube-proxy.
const (
	metricHealthz = "kubeproxy_proxy_healthz_total"
	metricLivez   = "kubeproxy_proxy_livez_total"
)

// metrics count the answers.
type metrics struct {
	healthz *prometheus.CounterVec
	livez   *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		healthz: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricHealthz, Help: "Cumulative proxy healthz HTTP status"}, []string{"code"}),
		livez:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricLivez, Help: "Cumulative proxy livez HTTP status"}, []string{"code"}),
	}
	if reg == nil {
		return m, nil
	}
	if err := errors.Join(reg.Register(m.healthz), reg.Register(m.livez)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return m, nil
}
