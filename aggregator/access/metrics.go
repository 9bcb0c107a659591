package access

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	metricRefusals     = "weft_refusals_total"
	metricReloadErrors = "weft_config_reload_errors_total"
	metricReloaded     = "weft_config_last_reload_success_timestamp_seconds"
)

// unnamed is the label of publishers outside the configuration: callers choose any names.
const unnamed = "-"

type metrics struct {
	refusals     *prometheus.CounterVec
	reloadErrors prometheus.Counter
	reloaded     prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, file bool) (*metrics, error) {
	m := &metrics{
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricRefusals, Help: "Calls and updates refused, by publisher and by the right or limit that decided.",
		}, []string{"publisher", "limit"}),
		reloadErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: metricReloadErrors, Help: "Changes of the configuration that could not be used.",
		}),
		reloaded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: metricReloaded, Help: "Unix time at which the configuration in force was read.",
		}),
	}
	if reg == nil {
		return m, nil
	}
	err := reg.Register(m.refusals)
	if file {
		err = errors.Join(err, reg.Register(m.reloadErrors), reg.Register(m.reloaded))
	}
	return m, err
}
