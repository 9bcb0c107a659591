package conditions

import (
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
	// interval is long, because a look wakes an idle process.
	interval = 10 * time.Second
	// hold, and a random time up to hold, pass before a report: nodes of a cluster share many causes.
	hold = 30 * time.Second
	// maxReason is in characters: an event must have room for the remedy.
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
	// A cause precedes its effects.
	Conditions []Condition
	// Event must not block: Report holds the lock.
	Event      func(kind, reason, condition, message string)
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
}

// Monitor watches the conditions of a process.
type Monitor struct {
	cfg Config

	mu     sync.Mutex
	tracks []track
}

type track struct {
	// state is -1 before the first look.
	state State
	since time.Time
	// spread is random, up to hold. A recovery waits for spread alone.
	spread time.Duration
	// reported is the reported message, "" without a problem. wrongSince is the begin of the
	// problem, with all its states.
	reported   string
	wrongSince time.Time
	// worst is the worst reported state of the problem.
	worst State
}

// NewMonitor returns an error if a metric is already registered, or a condition is not in Kinds.
func NewMonitor(cfg Config) (*Monitor, error) {
	m := &Monitor{cfg: cfg, tracks: make([]track, len(cfg.Conditions))}
	for i, c := range cfg.Conditions {
		if KindOf(c.Name).Name == "" {
			return nil, fmt.Errorf("condition %q: it is not in conditions.Kinds: add it, with its remedy", c.Name)
		}
		m.tracks[i] = track{state: -1, spread: rand.N(hold)} //nolint:gosec // not a secret
	}
	return m, cfg.Registerer.Register(m)
}

// Look returns the conditions in the order of Config.Conditions.
func (m *Monitor) Look() *Process {
	out := make([]Status, len(m.cfg.Conditions))
	for i, c := range m.cfg.Conditions {
		state, err := c.check()
		out[i] = Status{Name: c.Name, State: state}
		if err != nil {
			out[i].Message, out[i].Remedy = strings.Join(strings.Fields(err.Error()), " "), KindOf(c.Name).Remedy
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.cfg.Now()
	for i := range out {
		t := &m.tracks[i]
		if out[i].State != t.state {
			if t.state <= OK {
				t.wrongSince = now
			}
			t.state, t.since = out[i].State, now
		}
		out[i].Since = t.since
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
		since := t.wrongSince
		if t.reported != "" {
			since = s.Since
		}
		switch wrong := s.State != OK; {
		case wrong && s.State > t.worst && now.Sub(since) >= hold+t.spread:
			t.reported, t.worst = s.Message, s.State
			m.cfg.Logger.Warn("weft is "+s.State.String(), "condition", s.Name, "since", t.wrongSince.UTC().Format(time.RFC3339), "reason", s.Message, "remedy", s.Remedy)
			// An event about the API server cannot reach it.
			if s.Name != APIServer {
				m.cfg.Event(eventWarning, ReasonDegraded, s.Name, fmt.Sprintf("%s: %.*s. Remedy: %s.", s.Name, maxReason, s.Message, s.Remedy))
			}
		case !wrong && t.reported != "" && now.Sub(s.Since) >= t.spread:
			lasted := s.Since.Sub(t.wrongSince).Round(time.Second)
			m.cfg.Logger.Info("weft has recovered", "condition", s.Name, "after", lasted)
			m.cfg.Event(eventNormal, ReasonRecovered, s.Name, fmt.Sprintf("%s: ok again after %v: %s", s.Name, lasted, t.reported))
			t.reported, t.worst = "", OK
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
