package aggregator

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/flows"
	"github.com/weft-proxy/weft/aggregator/history"
	"github.com/weft-proxy/weft/aggregator/statedir"
	"github.com/weft-proxy/weft/aggregator/unconfirmed"
	"github.com/weft-proxy/weft/nft/lint"
)

// Values of the label of weft_aggregator_work_total. The kinds of a desired.Work come first.
const (
	workKeys    = "keys"
	workRules   = "rules"
	workObjects = "objects"
	workDumps   = "dumps"
	workRecords = "records"
)

// maxPublisherLabels bounds the publishers with their own label. The others share otherPublisher, not a
// valid publisher name.
const (
	maxPublisherLabels = 64
	otherPublisher     = "(other)"
)

type metrics struct {
	commits  prometheus.Counter
	duration [3]prometheus.Observer
	// elements and rules count additions, then deletions.
	elements, rules [2]prometheus.Counter
	rejections      *prometheus.CounterVec
	shadowed        prometheus.Gauge
	dropped         prometheus.Counter
	repairs         prometheus.Counter
	flows           *flows.Metrics
	sessions        prometheus.Gauge
	revision        prometheus.Gauge
	unrepaired      prometheus.Gauge
	stateErrors     *prometheus.CounterVec
	findings        *prometheus.GaugeVec
	historyLost     prometheus.Counter
	// looked holds the counters of a desired.Work.
	work   *prometheus.CounterVec
	looked [3]prometheus.Counter

	mu         sync.Mutex
	publishers map[string]struct{}
}

// newMetrics accepts a nil reg.
func newMetrics(reg prometheus.Registerer, pending func() int) *metrics {
	m, to := &metrics{publishers: make(map[string]struct{})}, promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return to.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return to.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	vec := func(name, help, label string, values ...string) *prometheus.CounterVec {
		v := to.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		for _, value := range values {
			v.WithLabelValues(value)
		}
		return v
	}
	m.commits = counter("weft_commits_total", "Batches committed to the kernel.")
	duration := to.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weft_commit_duration_seconds", Help: "Seconds that each commit spent in a phase: wait (of its oldest update for its turn), build (merge and plan), kernel.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12),
	}, []string{"phase"})
	for i, phase := range []string{"wait", "build", "kernel"} {
		m.duration[i] = duration.WithLabelValues(phase)
	}
	elements := vec("weft_elements_changed_total", "Elements of sets and maps that commits added to and deleted from the kernel.", "change")
	rules := vec("weft_rules_changed_total", "Rules that commits added to and deleted from the kernel.", "change")
	for i, change := range []string{"added", "deleted"} {
		m.elements[i], m.rules[i] = elements.WithLabelValues(change), rules.WithLabelValues(change)
	}
	m.rejections = to.NewCounterVec(prometheus.CounterOpts{Name: "weft_rejections_total", Help: "Updates rejected, by publisher and the reason of the first violation."}, []string{"publisher", "reason"})
	m.dropped = counter("weft_updates_dropped_total", "Updates dropped because their sender was gone before they were applied.")
	m.shadowed = gauge("weft_shadowed_elements", "Map elements that are not in force because another fragment has a different value for their key.")
	m.repairs = counter("weft_drift_repairs_total", "Commits that repaired changes by other processes.")
	m.sessions = gauge("weft_sessions", "Open Publish streams.")
	m.revision = gauge("weft_revision", "Revision of the last commit.")
	m.stateErrors = vec("weft_state_errors_total", "Failed attempts to read or write a part of the state directory.", "file",
		statedir.KindRecord, statedir.KindDurable, statedir.KindFlows, history.Kind, unconfirmed.Kind)
	m.historyLost = counter("weft_history_lost_total", "Commits without an entry of their own in the history, because they came faster than it could be written.")
	m.findings = to.NewGaugeVec(prometheus.GaugeOpts{Name: "weft_findings", Help: "Findings in the rules of fragments, by kind: what is right and can hardly be meant."}, []string{"id"})
	m.found(nil)
	m.unrepaired = gauge("weft_unrepaired_tables", "Tables that differ from the committed state because the kernel refuses to repair them.")
	m.work = vec("weft_aggregator_work_total", "Work of the writer: elements (keys), rules, chains and sets (objects) examined, dumps of the whole kernel state, records written.", "kind", workKeys, workRules, workObjects, workDumps, workRecords)
	for i, kind := range []string{workKeys, workRules, workObjects} {
		m.looked[i] = m.work.WithLabelValues(kind)
	}
	to.NewGaugeFunc(prometheus.GaugeOpts{Name: "weft_pending_updates", Help: "Updates that wait for a commit."},
		func() float64 { return float64(pending()) })
	m.flows = &flows.Metrics{
		Flows:       counter("weft_flows_flushed_total", "UDP conntrack entries removed after commits."),
		FlowErrors:  counter("weft_flow_flush_errors_total", "Failed attempts to remove UDP conntrack entries. Each is retried."),
		Purged:      counter("weft_affinity_purged_total", "Entries of affinity maps removed because no rule makes them any more."),
		PurgeErrors: counter("weft_affinity_errors_total", "Failed attempts to remove entries of affinity maps. Each is retried."),
	}
	return m
}

// A zero timing was not measured.
func (m *metrics) committed(c *weftv1.Counts, revision uint64, t timing) {
	m.commits.Inc()
	if t != (timing{}) {
		for i, d := range [...]time.Duration{t.wait, t.build, t.kernel} {
			m.duration[i].Observe(d.Seconds())
		}
	}
	m.revision.Set(float64(revision))
	m.changed(c)
}

func (m *metrics) found(count map[lint.ID]int) {
	for _, id := range lint.IDs {
		m.findings.WithLabelValues(string(id)).Set(float64(count[id]))
	}
}

func (m *metrics) worked(before, after desired.Work) {
	for i, n := range [...]uint64{after.Keys - before.Keys, after.Rules - before.Rules, after.Objects - before.Objects} {
		m.looked[i].Add(float64(n))
	}
}

func (m *metrics) repaired(c *weftv1.Counts, revision uint64) {
	m.repairs.Inc()
	m.revision.Set(float64(revision))
	m.changed(c)
}

func (m *metrics) changed(c *weftv1.Counts) {
	m.elements[0].Add(float64(c.GetElementsAdded()))
	m.elements[1].Add(float64(c.GetElementsDeleted()))
	m.rules[0].Add(float64(c.GetRulesAdded()))
	m.rules[1].Add(float64(c.GetRulesDeleted()))
}

func (m *metrics) rejected(r *RejectedError) (publisher, reason string) {
	first := weftv1.Violation_REASON_UNSPECIFIED
	if len(r.Violations) > 0 {
		first = r.Violations[0].GetReason()
	}
	publisher, reason = m.publisherLabel(r.Fragment.Publisher), reasonLabel(first)
	m.rejections.WithLabelValues(publisher, reason).Inc()
	return publisher, reason
}

func (m *metrics) publisherLabel(publisher string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.publishers[publisher]; !ok {
		if len(m.publishers) >= maxPublisherLabels {
			return otherPublisher
		}
		m.publishers[publisher] = struct{}{}
	}
	return publisher
}

// reasonLabel returns, for example, "snapshot_needed".
func reasonLabel(r weftv1.Violation_Reason) string {
	name, ok := weftv1.Violation_Reason_name[int32(r)]
	if !ok {
		return "unknown"
	}
	return strings.ToLower(strings.TrimPrefix(name, "REASON_"))
}
