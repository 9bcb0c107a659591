package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
)

// endpoints are the HTTP addresses of a daemon; an empty one is off. The ports
// are kube-proxy's.
type endpoints struct {
	bound listeners

	metrics string
	healthz string
	// ready answers /readyz; nil where that is no other question than /healthz.
	ready health
}

const (
	defaultMetricsAddress = "127.0.0.1:10249"
	defaultHealthzAddress = "0.0.0.0:10256"
)

// health answers why a daemon is not healthy; nil means that it is.
type health func() error

// newRegistry returns a registry with the process's own metrics.
func newRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "weft_build_info", Help: "Always 1; the label is weft's version.",
	}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	reg.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// serve adds the HTTP servers to g, on the addresses that listen took; where it
// was not called, as a standby may not take them before its time, they are taken
// now.
func (e *endpoints) serve(ctx context.Context, g *errgroup.Group, reg *prometheus.Registry, check health) error {
	if e.bound == nil {
		if err := e.listen(ctx); err != nil {
			return err
		}
	}
	ready := e.ready
	if ready == nil {
		ready = check
	}
	metrics := http.NewServeMux()
	metrics.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	metrics.HandleFunc("/healthz", answer(check))
	metrics.HandleFunc("/readyz", answer(ready))
	metrics.HandleFunc("/proxyMode", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, "nftables")
	})
	healthz := http.NewServeMux()
	healthz.HandleFunc("/healthz", answer(check))
	healthz.HandleFunc("/livez", answer(check))
	healthz.HandleFunc("/readyz", answer(ready))
	for address, handler := range map[string]http.Handler{e.metrics: metrics, e.healthz: healthz} {
		if l := e.bound[address]; l != nil {
			serveHTTP(ctx, g, l, handler)
		}
	}
	return nil
}

// answer is a health handler: 200 or 503, with the reason in JSON.
func answer(check health) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		body := struct {
			Time    time.Time `json:"currentTime"`
			Healthy bool      `json:"healthy"`
			Reason  string    `json:"reason,omitempty"`
		}{Time: time.Now().UTC(), Healthy: true}
		status := http.StatusOK
		if err := check(); err != nil {
			body.Healthy, body.Reason, status = false, strings.TrimSpace(err.Error()), http.StatusServiceUnavailable
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(status)
		// The reader may have gone; there is nobody to tell.
		_ = json.NewEncoder(w).Encode(body)
	}
}

func (e *endpoints) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&e.metrics, "metrics-bind-address", defaultMetricsAddress, "address of /metrics; empty turns it off")
	flags.StringVar(&e.healthz, "healthz-bind-address", defaultHealthzAddress, "address of /healthz, /livez and /readyz; empty turns it off")
}
