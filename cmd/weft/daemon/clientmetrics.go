package daemon

import (
	"context"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/metrics"
)

// As in every component of Kubernetes, without metrics of name resolution, credential plugins and the
// transport cache.
const (
	metricRequestSeconds  = "rest_client_request_duration_seconds"
	metricLimiterSeconds  = "rest_client_rate_limiter_duration_seconds"
	metricRequestSize     = "rest_client_request_size_bytes"
	metricResponseSize    = "rest_client_response_size_bytes"
	metricRequests        = "rest_client_requests_total"
	metricRequestsRetried = "rest_client_request_retries_total"
)

type clientMetrics struct {
	latency, limiter       restLatency
	requestSize, replySize restSize
	requests, retries      restCounter
}

func newClientMetrics(reg prometheus.Registerer) *clientMetrics {
	seconds := []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60}
	bytes := []float64{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"verb", "host"})
	}
	m := &clientMetrics{
		latency:     restLatency{histogram(metricRequestSeconds, "Request latency in seconds. Broken down by verb, and host.", seconds)},
		limiter:     restLatency{histogram(metricLimiterSeconds, "Client side rate limiter latency in seconds. Broken down by verb, and host.", seconds)},
		requestSize: restSize{histogram(metricRequestSize, "Request size in bytes. Broken down by verb and host.", bytes)},
		replySize:   restSize{histogram(metricResponseSize, "Response size in bytes. Broken down by verb and host.", bytes)},
		requests: restCounter{prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricRequests,
			Help: "Number of HTTP requests, partitioned by status code, method, and host."}, []string{"code", "method", "host"})},
		retries: restCounter{prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricRequestsRetried,
			Help: "Number of request retries, partitioned by status code, verb, and host."}, []string{"code", "verb", "host"})},
	}
	reg.MustRegister(m.latency, m.limiter, m.requestSize, m.replySize, m.requests, m.retries)
	return m
}

// install makes client-go report to m. client-go accepts only the first receiver.
func (m *clientMetrics) install() {
	metrics.Register(metrics.RegisterOpts{
		RequestLatency: m.latency, RateLimiterLatency: m.limiter, RequestSize: m.requestSize, ResponseSize: m.replySize,
		RequestResult: m.requests, RequestRetry: m.retries,
	})
}

type restLatency struct{ *prometheus.HistogramVec }

// Observe implements metrics.LatencyMetric.
func (r restLatency) Observe(_ context.Context, verb string, u url.URL, latency time.Duration) {
	r.WithLabelValues(verb, u.Host).Observe(latency.Seconds())
}

type restSize struct{ *prometheus.HistogramVec }

// Observe implements metrics.SizeMetric.
func (r restSize) Observe(_ context.Context, verb, host string, size float64) {
	r.WithLabelValues(verb, host).Observe(size)
}

type restCounter struct{ *prometheus.CounterVec }

// Increment implements metrics.ResultMetric.
func (r restCounter) Increment(_ context.Context, code, method, host string) {
	r.WithLabelValues(code, method, host).Inc()
}

// IncrementRetry implements metrics.RetryMetric.
func (r restCounter) IncrementRetry(_ context.Context, code, method, host string) {
	r.WithLabelValues(code, method, host).Inc()
}
