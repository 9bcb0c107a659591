package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// ProxyConfig configures a Proxy.
type ProxyConfig struct {
	Families [model.NumFamilies]bool
	// of a change's wait for its commit
	Timeout time.Duration
	// Pending returns the start of the oldest change's wait, or zero.
	Pending func() time.Time
	// Published returns why no rules are in force, or nil. It is not called after the first commit.
	Published func() error
	Now       func() time.Time
	// may be nil
	Registerer prometheus.Registerer
}

// Proxy is the health of the node's service proxy, not a proxy server.
type Proxy struct {
	cfg            ProxyConfig
	healthz, livez *prometheus.CounterVec

	mu sync.Mutex
	// last acknowledged commit; zero before the first
	updated time.Time
	// load balancers should avoid the node
	ineligible bool
	required   []func() error
}

const (
	metricHealthz = "kubeproxy_proxy_healthz_total"
	metricLivez   = "kubeproxy_proxy_livez_total"
)

// NewProxy returns a starting, eligible proxy. It fails if the metrics are already registered.
func NewProxy(cfg ProxyConfig) (*Proxy, error) {
	p := &Proxy{
		cfg:     cfg,
		healthz: prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricHealthz, Help: "Cumulative proxy healthz HTTP status"}, []string{"code"}),
		livez:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: metricLivez, Help: "Cumulative proxy livez HTTP status"}, []string{"code"}),
	}
	if cfg.Registerer != nil {
		if err := errors.Join(cfg.Registerer.Register(p.healthz), cfg.Registerer.Register(p.livez)); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return p, nil
}

// Updated records that all known changes are committed.
func (p *Proxy) Updated() {
	now := p.cfg.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.updated = now
}

// SetEligible sets whether load balancers may send new traffic to this node.
func (p *Proxy) SetEligible(eligible bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ineligible = !eligible
}

// Require adds a condition for health and life. check is called concurrently for each answer and must be
// fast.
func (p *Proxy) Require(check func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.required = append(p.required, check)
}

// FamilyHealth is the state of an IP family, with kube-proxy's JSON names.
type FamilyHealth struct {
	LastUpdated time.Time `json:"lastUpdated"`
	Healthy     bool      `json:"healthy"`
}

// Health is the answer of /healthz and /livez, with kube-proxy's JSON names and order.
type Health struct {
	// LastUpdated is the last acknowledged commit. With status 200, handlers set it to the present time as
	// kube-proxy does.
	LastUpdated time.Time `json:"lastUpdated"`
	CurrentTime time.Time `json:"currentTime"`
	// only for /healthz
	NodeEligible *bool `json:"nodeEligible,omitempty"`
	// without the node's eligibility
	Healthy bool `json:"healthy"`
	// Status has each family after its first commit.
	Status map[string]FamilyHealth `json:"status,omitempty"`
	// not in kube-proxy's answer
	Reason string `json:"reason,omitempty"`
}

// Health returns the state without the node's eligibility.
func (p *Proxy) Health() Health {
	// The order matters: changes pending later are younger than now.
	pending, now := p.cfg.Pending(), p.cfg.Now()
	p.mu.Lock()
	updated := p.updated
	p.mu.Unlock()
	h := Health{LastUpdated: updated, CurrentTime: now, Healthy: true, Status: make(map[string]FamilyHealth)}
	if !updated.IsZero() {
		h.Healthy = pending.IsZero() || now.Sub(pending) < p.cfg.Timeout
		for f, have := range p.cfg.Families {
			if have {
				h.Status[model.Family(f).String()] = FamilyHealth{LastUpdated: updated, Healthy: h.Healthy}
			}
		}
	}
	err := p.alive()
	if err == nil && updated.IsZero() {
		err = p.cfg.Published()
	}
	if err != nil {
		h.Healthy, h.Reason = false, err.Error()
	}
	return h
}

func (p *Proxy) alive() error {
	p.mu.Lock()
	required := p.required
	p.mu.Unlock()
	for _, check := range required {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// Healthy reports whether the proxy itself is healthy.
func (p *Proxy) Healthy() bool { return p.Health().Healthy }

// Eligible reports whether load balancers may send new traffic to this node.
func (p *Proxy) Eligible() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.ineligible
}

// Healthz answers /healthz: the proxy's health and the node's eligibility.
func (p *Proxy) Healthz(w http.ResponseWriter, _ *http.Request) {
	h, eligible := p.Health(), p.Eligible()
	h.NodeEligible = &eligible
	p.answer(w, h, h.Healthy && eligible, p.healthz)
}

// Livez answers /livez: whether a restart may help. It ignores publishing.
func (p *Proxy) Livez(w http.ResponseWriter, _ *http.Request) {
	h, err := p.Health(), p.alive()
	h.Healthy, h.Reason = err == nil, ""
	if err != nil {
		h.Reason = err.Error()
	}
	p.answer(w, h, h.Healthy, p.livez)
}

func (p *Proxy) answer(w http.ResponseWriter, h Health, healthy bool, total *prometheus.CounterVec) {
	status := http.StatusServiceUnavailable
	if healthy {
		status, h.LastUpdated = http.StatusOK, p.cfg.Now()
	}
	total.WithLabelValues(fmt.Sprint(status)).Inc()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// As in kube-proxy, without a final newline.
	if b, err := json.Marshal(h); err == nil {
		_, _ = w.Write(b)
	}
}
