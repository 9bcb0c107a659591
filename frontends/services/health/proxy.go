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

// ProxyConfig describes when the proxy is healthy.
type ProxyConfig struct {
	// Families are those of the node.
	Families [model.NumFamilies]bool
	// Timeout is how long a change may wait for its commit.
	Timeout time.Duration
	// Pending returns since when the oldest change waits, zero if none does; nil means
	// that none ever does.
	Pending func() time.Time
	// Published returns why no rules are in force, nil if there are some; a nil function
	// means that there always are. It is not called after the first commit.
	Published func() error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Registerer receives the metrics; nil means none.
	Registerer prometheus.Registerer
}

// Proxy is the health of the node's service proxy. It is not a proxy server.
type Proxy struct {
	cfg ProxyConfig
	// healthz and livez count the answers.
	healthz, livez *prometheus.CounterVec

	mu sync.Mutex
	// updated is when the last commit was acknowledged, zero before the first.
	updated time.Time
	// ineligible is true while load balancers should not use the node.
	ineligible bool
	required   []func() error
}

// Names of the metrics, which are those of kube-proxy.
const (
	metricHealthz = "kubeproxy_proxy_healthz_total"
	metricLivez   = "kubeproxy_proxy_livez_total"
)

// NewProxy returns a proxy that is starting, which counts as eligible. An error means that
// the metrics are registered already.
func NewProxy(cfg ProxyConfig) (*Proxy, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Pending == nil {
		cfg.Pending = func() time.Time { return time.Time{} }
	}
	if cfg.Published == nil {
		cfg.Published = func() error { return nil }
	}
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

// Updated records that everything known is committed. publish.Observer.Answered calls it.
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

// Require adds a condition of another part of the process: while check returns an error,
// the proxy is neither healthy nor alive, and the answer has the text of the first such
// error. check is called by several goroutines, for each answer, and must return soon.
func (p *Proxy) Require(check func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.required = append(p.required, check)
}

// FamilyHealth is the state of one IP family. The names in JSON are those of kube-proxy.
type FamilyHealth struct {
	LastUpdated time.Time `json:"lastUpdated"`
	Healthy     bool      `json:"healthy"`
}

// Health is the answer of /healthz and /livez. The names in JSON and their order are
// those of kube-proxy.
type Health struct {
	// LastUpdated is when the last commit was acknowledged. The handlers set it to the
	// present time if the answer is 200, as kube-proxy does.
	LastUpdated time.Time `json:"lastUpdated"`
	CurrentTime time.Time `json:"currentTime"`
	// NodeEligible is set only in the answer of /healthz.
	NodeEligible *bool `json:"nodeEligible,omitempty"`
	// Healthy is the state of the proxy without the eligibility of the node.
	Healthy bool `json:"healthy"`
	// Status has an entry for each family after its first commit.
	Status map[string]FamilyHealth `json:"status,omitempty"`
	// Reason has the error of a condition. kube-proxy has no such field.
	Reason string `json:"reason,omitempty"`
}

// Health returns the state, without the node's eligibility.
func (p *Proxy) Health() Health {
	// The order matters: a change that is pending after this is younger than now.
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

// alive returns the first error of the conditions of other parts.
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

// Healthz answers /healthz: the health of the proxy and the eligibility of the node.
func (p *Proxy) Healthz(w http.ResponseWriter, _ *http.Request) {
	h, eligible := p.Health(), p.Eligible()
	h.NodeEligible = &eligible
	p.answer(w, h, h.Healthy && eligible, p.healthz)
}

// Livez answers /livez: whether a restart may help. It does not depend on what is
// published, because a restart brings back neither the aggregator nor the API server, and a
// rejected update would be rejected again.
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
	// kube-proxy ends the body without a newline, as Marshal does. The only possible
	// error is that the connection is closed.
	if b, err := json.Marshal(h); err == nil {
		_, _ = w.Write(b)
	}
}
