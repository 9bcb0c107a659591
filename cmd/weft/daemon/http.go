package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
	"github.com/weft-proxy/weft/cmd/weft/kubeproxy"
	"github.com/weft-proxy/weft/cmd/weft/statuspage"
)

const (
	flagMetrics = "metrics-bind-address"
	flagHealthz = "healthz-bind-address"

	defaultMetricsAddress = "127.0.0.1:10249"
	defaultHealthzAddress = "0.0.0.0:10256"

	// The NetworkPolicy frontend runs beside the Service frontend or kube-proxy.
	policyMetricsAddress = "127.0.0.1:10243"
	policyHealthzAddress = "127.0.0.1:10244"
)

// serveRetry is as in kube-proxy.
const serveRetry = 5 * time.Second

// An empty address turns a server off.
type httpSettings struct {
	metrics string
	healthz string
	// kube-proxy's bindAddressHardFail
	hardFail bool
	// profiles at the address of the metrics
	profiling bool
	// JSON of /configz; nil shows the flags
	configuration any
}

func (s *httpSettings) add(set *pflag.FlagSet, verb Verb) {
	metrics, healthz := defaultMetricsAddress, defaultHealthzAddress
	if verb == VerbPolicy {
		metrics, healthz = policyMetricsAddress, policyHealthzAddress
	}
	set.StringVar(&s.metrics, flagMetrics, metrics, "address of /metrics; empty turns it off")
	set.StringVar(&s.healthz, flagHealthz, healthz, "address of /healthz, /livez and /readyz; empty turns it off")
}

// withProxy uses kube-proxy's addresses only for the Service frontend.
func (s httpSettings) withProxy(verb Verb, proxy *kubeproxy.Settings) httpSettings {
	if verb != VerbAggregator {
		s.hardFail, s.profiling = proxy.Configuration.BindAddressHardFail, proxy.Configuration.EnableProfiling
	}
	if verb.hasServices() {
		s.metrics, s.healthz, s.configuration = proxy.MetricsAddress, proxy.HealthzAddress, proxy.Configuration
	}
	return s
}

type endpoint struct {
	flag    string
	address string
	// the reason of the Node's event, as in kube-proxy
	reason string
}

func (s *httpSettings) endpoints() []endpoint {
	return []endpoint{
		{flagMetrics, s.metrics, "FailedToStartMetricServer"},
		{flagHealthz, s.healthz, "FailedToStartProxierHealthcheck"},
	}
}

// check returns why a part is not healthy or not ready, or nil.
type check func() error

type proxyHealth interface {
	Healthz(http.ResponseWriter, *http.Request)
	Livez(http.ResponseWriter, *http.Request)
	Require(check func() error)
}

// nodeEvents does not block.
type nodeEvents interface {
	Node(kind, reason, message string)
}

type httpServers struct {
	httpSettings
	// A server without a port binds its address itself.
	ports   listeners
	flags   *pflag.FlagSet
	version string
	healthy check
	monitor *conditions.Monitor
	errors  *serverErrors
	// The check is for /healthz, but not for /livez; it may be nil.
	published check
	// nil without the Service frontend
	proxy proxyHealth
	// may be nil
	page http.Handler
	// may be nil
	events nodeEvents
	log    *slog.Logger
	// 0 means serveRetry
	retry time.Duration
	// 0 means writeTimeout
	patience time.Duration
}

func newRegistry(version string) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "weft_build_info", Help: "Always 1; the label is weft's version.",
	}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	reg.MustRegister(build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

func (s *httpServers) run(ctx context.Context, g *errgroup.Group, reg *prometheus.Registry) {
	for _, e := range s.endpoints() {
		if e.address == "" {
			continue
		}
		handler := s.metricsHandler(reg)
		if e.flag == flagHealthz {
			handler = s.healthHandler()
		}
		g.Go(func() error { return s.keep(ctx, e, handler) })
	}
}

// keep retries a failed server, or returns the error with hardFail.
func (s *httpServers) keep(ctx context.Context, e endpoint, handler http.Handler) error {
	retry := cmp.Or(s.retry, serveRetry)
	reported := ""
	for l := s.ports[e.flag]; ; l = nil {
		err := s.serve(ctx, l, e, handler)
		if ctx.Err() != nil {
			return nil
		}
		s.errors.set(e.flag, err)
		if reported != err.Error() {
			reported = err.Error()
			s.report(e, err, retry)
		}
		if s.hardFail {
			return fmt.Errorf("--%s: %w", e.flag, err)
		}
		if !cli.Pause(ctx, retry) {
			return nil
		}
	}
}

func (s *httpServers) report(e endpoint, err error, retry time.Duration) {
	if s.log != nil {
		s.log.Error("an HTTP server failed", "flag", "--"+e.flag, "address", e.address, "error", err.Error(), "fatal", s.hardFail, "retry", retry)
	}
	if s.events != nil {
		s.events.Node("Warning", e.reason, err.Error())
	}
}

// serve binds the address if l is nil.
func (s *httpServers) serve(ctx context.Context, l net.Listener, e endpoint, handler http.Handler) error {
	if l == nil {
		var err error
		if l, err = bind(ctx, e.address); err != nil {
			return err
		}
	}
	s.errors.set(e.flag, nil)
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, WriteTimeout: cmp.Or(s.patience, writeTimeout), IdleTimeout: idleTimeout, ConnState: newHTTPConnections().changed}
	// The end of the process does not wait for a scrape.
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	return fmt.Errorf("serve http on %s: %w", l.Addr(), srv.Serve(l))
}

// serverErrors has errors by flag: nil for a running server, no entry while unknown. A nil
// serverErrors discards.
type serverErrors struct {
	mu     sync.Mutex
	byFlag map[string]error
}

func (e *serverErrors) set(flag string, err error) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byFlag == nil {
		e.byFlag = make(map[string]error)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: another program has it; if it is kube-proxy, take that off this node", err)
	}
	if err != nil {
		err = fmt.Errorf("--%s: %w", flag, err)
	}
	e.byFlag[flag] = err
}

func (e *serverErrors) running() error {
	e.mu.Lock()
	known := len(e.byFlag)
	e.mu.Unlock()
	if known < len((&httpSettings{}).endpoints()) {
		return errors.New("the ports of kube-proxy are not bound yet")
	}
	return e.err()
}

func (e *serverErrors) err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, flag := range slices.Sorted(maps.Keys(e.byFlag)) {
		errs = append(errs, e.byFlag[flag])
	}
	return errors.Join(errs...)
}

func (s *httpServers) healthHandler() http.Handler {
	mux := http.NewServeMux()
	healthz, livez := answer(s.health), answer(s.healthy)
	if s.proxy != nil {
		s.proxy.Require(s.healthy)
		healthz, livez = s.proxyHealthz, s.proxy.Livez
	}
	mux.HandleFunc("/healthz", healthz)
	mux.HandleFunc("/livez", livez)
	mux.HandleFunc("/readyz", s.monitor.Readyz)
	return mux
}

// health is for /healthz on the metrics port and, without the Service frontend, the health port.
func (s *httpServers) health() error {
	if err := s.healthy(); err != nil || s.published == nil {
		return err
	}
	return s.published()
}

// proxyHealthz answers as kube-proxy does, unless another frontend is not healthy.
func (s *httpServers) proxyHealthz(w http.ResponseWriter, r *http.Request) {
	if s.published != nil && s.published() != nil {
		answer(s.published)(w, r)
		return
	}
	s.proxy.Healthz(w, r)
}

func (s *httpServers) metricsHandler(reg *prometheus.Registry) http.Handler {
	pages := newPages(s.version, s.flags, s.configuration)
	pages.handle("/metrics", promhttp.HandlerFor(prometheus.Gatherers{reg, prometheus.GathererFunc(clientMetrics)}, promhttp.HandlerOpts{}).ServeHTTP)
	pages.handle("/healthz", pages.healthz(s.health))
	pages.handle("/readyz", s.monitor.Readyz)
	pages.handle("/proxyMode", func(w http.ResponseWriter, _ *http.Request) {
		plain(w)
		fmt.Fprint(w, "nftables")
	})
	if s.page != nil {
		pages.handle(statuspage.Root, s.page.ServeHTTP)
		pages.handle("/{$}", http.RedirectHandler(statuspage.Root, http.StatusSeeOther).ServeHTTP)
	}
	if s.profiling {
		pages.handle("/debug/pprof/", pprof.Index)
		pages.handle("/debug/pprof/cmdline", pprof.Cmdline)
		pages.handle("/debug/pprof/profile", pprof.Profile)
		pages.handle("/debug/pprof/symbol", pprof.Symbol)
		pages.handle("/debug/pprof/trace", pprof.Trace)
	}
	return pages.mux
}

func answer(check check) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { conditions.Answer(w, check()) }
}

// portPatience is for the ports of a killed weft: the kernel closes its files one by one.
const portPatience = time.Second

type listeners map[string]net.Listener

// listen binds the addresses first, so that a wrong address is an error of the command. Without
// hardFail the server retries. The ports are closed when ctx ends.
func (s *httpSettings) listen(ctx context.Context) (listeners, error) {
	bound := make(listeners)
	ours := make(map[string]bool)
	for _, e := range s.endpoints() {
		if e.address == "" {
			continue
		}
		l, err := bind(ctx, e.address)
		// An address rejected by the kernel, not by the parser, may be free later.
		if err != nil && (s.hardFail || ours[e.address] || !errors.As(err, new(syscall.Errno))) {
			return nil, fmt.Errorf("--%s: %w (an empty address turns it off)", e.flag, err)
		}
		if err != nil {
			continue
		}
		ours[e.address] = true
		bound[e.flag] = l
		context.AfterFunc(ctx, func() { _ = l.Close() })
	}
	return bound, nil
}

func bind(ctx context.Context, address string) (net.Listener, error) {
	for deadline := time.Now().Add(portPatience); ; {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return l, err
		}
		if !cli.Pause(ctx, portPatience/20) {
			return nil, ctx.Err()
		}
	}
}
