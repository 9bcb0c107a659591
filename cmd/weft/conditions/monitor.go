package conditions

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

const (
	// A look wakes a resting process.
	interval = 10 * time.Second
	// hold is the least time before a report, plus a random time up to hold: nodes of a cluster
	// share many causes.
	hold = 30 * time.Second
	// Characters of a message in an event; the remedy must fit.
	maxReason = 500
)

// Reasons of events on the Node.
const (
	ReasonDegraded  = "WeftDegraded"
	ReasonRecovered = "WeftRecovered"
)

const (
	eventNormal  = "Normal"
	eventWarning = "Warning"
)

// Config configures a Monitor.
type Config struct {
	Process, Version string
	// causes first
	Conditions []Condition
	// Event does not block. It may be nil.
	Event func(kind, reason, condition, message string)
	// may be nil
	Logger *slog.Logger
	// may be nil
	Registerer prometheus.Registerer
	// nil means time.Now
	Now func() time.Time
}

// Monitor watches the conditions of a process.
type Monitor struct {
	cfg Config

	mu     sync.Mutex
	tracks []track
}

type track struct {
	Status
	// up to hold
	spread time.Duration
	// reported is "" while the condition counts as OK. wrongSince is the begin of the problem.
	reported   string
	wrongSince time.Time
}

// NewMonitor returns an error if a metric is registered, or a condition is not in Kinds.
func NewMonitor(cfg Config) (*Monitor, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Event == nil {
		cfg.Event = func(_, _, _, _ string) {}
	}
	m := &Monitor{cfg: cfg, tracks: make([]track, len(cfg.Conditions))}
	for i, c := range cfg.Conditions {
		if KindOf(c.Name).Name == "" {
			return nil, fmt.Errorf("condition %q: it is not in conditions.Kinds: add it, with its remedy", c.Name)
		}
		m.tracks[i] = track{Status: Status{Name: c.Name, State: -1}, spread: rand.N(hold)} //nolint:gosec // not a secret
	}
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(m); err != nil {
			return nil, fmt.Errorf("register the metrics of conditions: %w", err)
		}
	}
	return m, nil
}

// Look returns the conditions in the order of Config.Conditions.
func (m *Monitor) Look() *Process {
	results := make([]error, len(m.cfg.Conditions))
	for i, c := range m.cfg.Conditions {
		results[i] = c.Check()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now, out := m.cfg.Now(), make([]Status, len(results))
	for i, err := range results {
		t := &m.tracks[i]
		if s := state(err); s != t.State {
			if t.State <= OK {
				t.wrongSince = now
			}
			t.State, t.Since = s, now
		}
		t.Message, t.Remedy = "", ""
		if err != nil {
			t.Message, t.Remedy = strings.Join(strings.Fields(err.Error()), " "), KindOf(t.Name).Remedy
		}
		out[i] = t.Status
	}
	return &Process{m.cfg.Process, m.cfg.Version, out}
}

// Run calls Report regularly until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	m.Report()
	for cli.Pause(ctx, interval) {
		m.Report()
	}
}

// Report reports lasting conditions, and their end.
func (m *Monitor) Report() {
	list := m.Look().Conditions
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.cfg.Now()
	for i, s := range list {
		t := &m.tracks[i]
		switch wrong := s.State != OK; {
		case wrong && t.reported == "" && now.Sub(t.wrongSince) >= hold+t.spread:
			t.reported = s.Message
			m.cfg.Logger.Warn("weft is "+s.State.String(), "condition", s.Name, "since", t.wrongSince.UTC().Format(time.RFC3339), "reason", s.Message, "remedy", s.Remedy)
			// Without the API server, the event cannot arrive.
			if s.Name != APIServer {
				m.cfg.Event(eventWarning, ReasonDegraded, s.Name, fmt.Sprintf("%s: %.*s. Remedy: %s.", s.Name, maxReason, s.Message, s.Remedy))
			}
		case !wrong && t.reported != "" && now.Sub(s.Since) >= t.spread:
			lasted := s.Since.Sub(t.wrongSince).Round(time.Second)
			m.cfg.Logger.Info("weft has recovered", "condition", s.Name, "after", lasted)
			m.cfg.Event(eventNormal, ReasonRecovered, s.Name, fmt.Sprintf("%s: ok again after %v: %s", s.Name, lasted, t.reported))
			t.reported = ""
		}
	}
}

var degraded = prometheus.NewDesc("weft_degraded", "1 if the condition is not as it should be, 0 if it is.", []string{"condition"}, nil)

var ready = prometheus.NewDesc("weft_ready", "1 if /readyz is 200, 0 if it is 503.", nil, nil)

// Describe implements prometheus.Collector.
func (m *Monitor) Describe(to chan<- *prometheus.Desc) { to <- degraded; to <- ready }

// Collect implements prometheus.Collector.
func (m *Monitor) Collect(to chan<- prometheus.Metric) {
	p, isReady := m.Look(), 1.0
	if p.State() == NotReady {
		isReady = 0
	}
	for _, s := range p.Conditions {
		value := 0.0
		if s.State != OK {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(degraded, prometheus.GaugeValue, value, s.Name)
	}
	to <- prometheus.MustNewConstMetric(ready, prometheus.GaugeValue, isReady)
}
