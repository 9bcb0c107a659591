package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
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
	metrics string
	healthz string
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

// serve adds the HTTP servers to g. It listens before it returns, so a wrong
// or taken address is an error of the command.
func (e *endpoints) serve(ctx context.Context, g *errgroup.Group, reg *prometheus.Registry, check health) error {
	metrics := http.NewServeMux()
	metrics.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	metrics.HandleFunc("/healthz", answer(check))
	metrics.HandleFunc("/proxyMode", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, "nftables")
	})
	healthz := http.NewServeMux()
	healthz.HandleFunc("/healthz", answer(check))
	healthz.HandleFunc("/livez", answer(check))
	for _, s := range []struct {
		flag, address string
		handler       http.Handler
	}{
		{"metrics-bind-address", e.metrics, metrics},
		{"healthz-bind-address", e.healthz, healthz},
	} {
		if s.address == "" {
			continue
		}
		if err := listenHTTP(ctx, g, s.address, s.handler); err != nil {
			return fmt.Errorf("--%s: %w (an empty address turns it off)", s.flag, err)
		}
	}
	return nil
}

func listenHTTP(ctx context.Context, g *errgroup.Group, address string, handler http.Handler) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve http on %s: %w", address, err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		// The process is about to end; nobody waits for a scrape.
		return srv.Close()
	})
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
	flags.StringVar(&e.healthz, "healthz-bind-address", defaultHealthzAddress, "address of /healthz and /livez; empty turns it off")
}
