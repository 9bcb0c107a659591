package health

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// ProxyConfig says what the health of the proxy is made of.
type ProxyConfig struct {
	// Families are those that the node has.
	Families [model.Families]bool
	// Timeout is how long a change may wait for its commit.
	Timeout time.Duration
	// Pending returns since when the oldest change waits, zero if none does.
	Pending func() time.Time
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Registerer takes the metrics; nil means none.
	Registerer prometheus.Registerer
}

// Proxy is the health of the node's proxy.
type Proxy struct {
	cfg     ProxyConfig
	metrics *metrics

	mu sync.Mutex
	// updated is when the last commit was acknowledged, zero before the first.
	updated time.Time
	// ineligible is true while load balancers should leave the node out.
	ineligible bool
	required   []func() error
}

// NewProxy returns a proxy that is starting up, which counts as healthy.
func NewProxy(cfg ProxyConfig) (*Proxy, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Pending == nil {
		cfg.Pending = func() time.Time { return time.Time{} }
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	return &Proxy{cfg: cfg, metrics: m}, nil
}

// Updated notes that everything that had come in until a moment ago is committed.
func (p *Proxy) Updated() {
	now := p.cfg.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.updated = now
}

// SetEligible notes whether load balancers may send new traffic to this node.
func (p *Proxy) SetEligible(eligible bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ineligible = !eligible
}

// Require adds a condition of another part of the process: while it returns an
// error, the proxy is not healthy, and the answer has the error's text.
func (p *Proxy) Require(check func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.required = append(p.required, check)
}

// FamilyHealth is the state of one IP family. The names in JSON are kube-proxy's.
type FamilyHealth struct {
	LastUpdated time.Time `json:"lastUpdated"`
	Healthy     bool      `json:"healthy"`
}

// Health is the answer of /healthz and /livez. The names in JSON and their order
// are kube-proxy's.
type Health struct {
	// LastUpdated is when the last commit was acknowledged; in the answer of a
	// healthy node it is the present, as it has always been in kube-proxy.
	LastUpdated time.Time `json:"lastUpdated"`
	CurrentTime time.Time `json:"currentTime"`
	// NodeEligible is in the answer of /healthz alone.
	NodeEligible *bool `json:"nodeEligible,omitempty"`
	// Healthy is the proxy's own state; the node's eligibility is not in it.
	Healthy bool `json:"healthy"`
	// Status has an entry for each family once it was updated.
	Status map[string]FamilyHealth `json:"status,omitempty"`
	// Reason says what else is wrong. kube-proxy has no such field.
	Reason string `json:"reason,omitempty"`
}

// Health returns the state, without the node's eligibility.
func (p *Proxy) Health() Health {
	// The order matters: what is pending after it was read is younger than now.
	pending, now := p.cfg.Pending(), p.cfg.Now()
	p.mu.Lock()
	updated, required := p.updated, p.required
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
	for _, check := range required {
		if err := check(); err != nil {
			h.Healthy, h.Reason = false, err.Error()
			break
		}
	}
	return h
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
	p.answer(w, h, h.Healthy && eligible, p.metrics.healthz)
}

// Livez answers /livez: the proxy's health alone.
func (p *Proxy) Livez(w http.ResponseWriter, _ *http.Request) {
	h := p.Health()
	p.answer(w, h, h.Healthy, p.metrics.livez)
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
	// kube-proxy ends the body without a newline, which Marshal does, too. All
	// that can fail is that the reader has gone.
	if b, err := json.Marshal(h); err == nil {
		_, _ = w.Write(b)
	}
}
