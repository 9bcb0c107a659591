package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
)

// endpoints are the HTTP servers of a daemon; an empty address is off. The ports
// and the paths are kube-proxy's.
type endpoints struct {
	bound listeners

	metrics string
	healthz string
	// hardFail ends the daemon when a server fails, in place of trying again
	// (kube-proxy's bindAddressHardFail).
	hardFail bool
	// profiling adds /debug/pprof to the address of the metrics.
	profiling bool
	// ready answers /readyz; nil where that is no other question than /healthz.
	ready health
	// proxy answers /healthz and /livez as kube-proxy does; nil where no frontend
	// is in this process: then they answer for the aggregator.
	proxy proxyHealth
	// configuration is what /configz shows as JSON; nil means the flags.
	configuration any
	// flags are those of the command.
	flags *pflag.FlagSet
	// events takes what the node's Node object should show; nil means nobody does.
	events nodeEvents
	log    *slog.Logger
	// retry is the time until a server that failed is tried again; 0 means
	// serveRetry.
	retry time.Duration
}

const (
	defaultMetricsAddress = "127.0.0.1:10249"
	defaultHealthzAddress = "0.0.0.0:10256"
)

// health answers why a daemon is not healthy; nil means that it is.
type health func() error

// proxyHealth is the health of a Service frontend.
type proxyHealth interface {
	Healthz(http.ResponseWriter, *http.Request)
	Livez(http.ResponseWriter, *http.Request)
	Require(check func() error)
}

// nodeEvents takes events about this node; it must not block.
type nodeEvents interface {
	Node(kind, reason, message string)
}

// newRegistry returns a registry with the process's own metrics.
func newRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "weft_build_info", Help: "Always 1; the label is weft's version.",
	}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	reg.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	newClientMetrics(reg).install()
	return reg
}

// serve adds the HTTP servers to g, on the addresses that listen took; where it
// was not called, as a standby may not take them before its time, they are taken
// now. It is called when the daemon's work begins, and says so to the Node.
func (e *endpoints) serve(ctx context.Context, g *errgroup.Group, reg *prometheus.Registry, check health) error {
	if e.bound == nil {
		if err := e.listen(ctx); err != nil {
			return err
		}
	}
	if e.events != nil {
		e.events.Node("Normal", "Starting", "weft "+version)
	}
	for _, s := range e.servers() {
		if s.address == "" {
			continue
		}
		handler := e.metricsHandler(reg, check)
		if s.flag == flagHealthz {
			handler = e.healthHandler(check)
		}
		g.Go(func() error { return e.keep(ctx, s, handler) })
	}
	return nil
}

// healthHandler is what load balancers and the kubelet ask.
func (e *endpoints) healthHandler(check health) http.Handler {
	mux := http.NewServeMux()
	if e.proxy != nil {
		e.proxy.Require(check)
		mux.HandleFunc("/healthz", e.proxy.Healthz)
		mux.HandleFunc("/livez", e.proxy.Livez)
	} else {
		mux.HandleFunc("/healthz", answer(check))
		mux.HandleFunc("/livez", answer(check))
	}
	mux.HandleFunc("/readyz", e.answerReady(check))
	return mux
}

// metricsHandler is what monitoring and people ask.
func (e *endpoints) metricsHandler(reg *prometheus.Registry, check health) http.Handler {
	pages := newPages(e.flags, e.configuration)
	pages.handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP)
	pages.handle("/healthz", pages.healthz(check))
	pages.handle("/readyz", e.answerReady(check))
	pages.handle("/proxyMode", func(w http.ResponseWriter, _ *http.Request) {
		plain(w)
		fmt.Fprint(w, "nftables")
	})
	if e.profiling {
		pages.handle("/debug/pprof/", pprof.Index)
		pages.handle("/debug/pprof/cmdline", pprof.Cmdline)
		pages.handle("/debug/pprof/profile", pprof.Profile)
		pages.handle("/debug/pprof/symbol", pprof.Symbol)
		pages.handle("/debug/pprof/trace", pprof.Trace)
	}
	return pages.mux
}

// answerReady answers /readyz.
func (e *endpoints) answerReady(check health) http.HandlerFunc {
	if e.ready == nil {
		return answer(check)
	}
	return answer(e.ready)
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
	e.flags = flags
	flags.StringVar(&e.metrics, flagMetrics, defaultMetricsAddress, "address of /metrics; empty turns it off")
	flags.StringVar(&e.healthz, flagHealthz, defaultHealthzAddress, "address of /healthz, /livez and /readyz; empty turns it off")
}
