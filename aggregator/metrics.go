package aggregator

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/flows"
	"github.com/weft-proxy/weft/aggregator/statedir"
)

// Names of the metrics.
const (
	metricCommits       = "weft_commits_total"
	metricCommitSeconds = "weft_commit_duration_seconds"
	metricElements      = "weft_elements_changed_total"
	metricRules         = "weft_rules_changed_total"
	metricRejections    = "weft_rejections_total"
	metricShadowed      = "weft_shadowed_elements"
	metricDropped       = "weft_updates_dropped_total"
	metricRepairs       = "weft_drift_repairs_total"
	metricSessions      = "weft_sessions"
	metricPending       = "weft_pending_updates"
	metricRevision      = "weft_revision"
	metricUnrepaired    = "weft_unrepaired_tables"
	metricStateErrors   = "weft_state_errors_total"
	metricWork          = "weft_aggregator_work_total"
)

// Values of the label of metricWork. Those of a desired.Work come first.
const (
	workKeys    = "keys"
	workRules   = "rules"
	workObjects = "objects"
	workDumps   = "dumps"
	workRecords = "records"
)

// maxPublisherLabels bounds the publishers that have a label of their own;
// further ones share otherPublisher, which cannot be the name of a publisher.
const (
	maxPublisherLabels = 64
	otherPublisher     = "(other)"
)

// metrics are those of the aggregator.
type metrics struct {
	commits    prometheus.Counter
	duration   *prometheus.HistogramVec
	elements   *prometheus.CounterVec
	rules      *prometheus.CounterVec
	rejections *prometheus.CounterVec
	shadowed   prometheus.Gauge
	dropped    prometheus.Counter
	repairs    prometheus.Counter
	flows      *flows.Metrics
	sessions   prometheus.Gauge
	revision   prometheus.Gauge
	// unrepaired is how many tables the last repair had to leave out.
	unrepaired prometheus.Gauge
	// stateErrors counts what went wrong with files of the state directory.
	stateErrors *prometheus.CounterVec
	// work counts what the writer looks at, by kind.
	work *prometheus.CounterVec

	mu sync.Mutex
	// publishers are those with a label of their own.
	publishers map[string]struct{}
}

// newMetrics makes the metrics and registers them; a nil Registerer registers
// nothing.
func newMetrics(reg prometheus.Registerer, pending func() int) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		publishers: make(map[string]struct{}),
		commits:    counter(metricCommits, "Batches committed to the kernel."),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: metricCommitSeconds, Help: "Seconds that each commit spent in a phase: wait (of its oldest update for its turn), build (merge and plan), kernel.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12),
		}, []string{"phase"}),
		elements:   vec(metricElements, "Elements of sets and maps that commits added to and deleted from the kernel.", "change"),
		rules:      vec(metricRules, "Rules that commits added to and deleted from the kernel.", "change"),
		rejections: vec(metricRejections, "Updates rejected, by publisher and the reason of the first violation.", "publisher", "reason"),
		dropped:    counter(metricDropped, "Updates dropped because their sender was gone before they were applied."),
		shadowed:   gauge(metricShadowed, "Map elements that are not in force because another fragment has a different value for their key."),
		repairs:    counter(metricRepairs, "Commits that repaired changes by other processes."),
		sessions:   gauge(metricSessions, "Open Publish streams."),
		revision:   gauge(metricRevision, "Revision of the last commit."),
	}
	m.stateErrors = vec(metricStateErrors, "Failed attempts to read or write a part of the state directory.", "file")
	removals, err := flows.NewMetrics(reg)
	if err != nil {
		return nil, err
	}
	m.flows = removals
	m.unrepaired = gauge(metricUnrepaired, "Tables that differ from the committed state because the kernel refuses to repair them.")
	m.work = vec(metricWork, "Work of the writer: elements (keys), rules, chains and sets (objects) examined, dumps of the whole kernel state, records written.", "kind")
	for _, kind := range []string{workKeys, workRules, workObjects, workDumps, workRecords} {
		m.work.WithLabelValues(kind)
	}
	for _, kind := range []statedir.Kind{statedir.KindRecord, statedir.KindFragment, statedir.KindFlows} {
		m.stateErrors.WithLabelValues(string(kind))
	}
	for _, change := range []string{"added", "deleted"} {
		m.elements.WithLabelValues(change)
		m.rules.WithLabelValues(change)
	}
	for _, phase := range []string{"wait", "build", "kernel"} {
		m.duration.WithLabelValues(phase)
	}
	if reg == nil {
		return m, nil
	}
	queued := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: metricPending, Help: "Updates that wait for a commit."},
		func() float64 { return float64(pending()) })
	var errs []error
	for _, c := range []prometheus.Collector{
		m.commits, m.duration, m.elements, m.rules, m.rejections, m.dropped, m.shadowed, m.repairs, m.sessions, m.revision, m.stateErrors, m.unrepaired, m.work, queued,
	} {
		errs = append(errs, reg.Register(c))
	}
	return m, errors.Join(errs...)
}

// committed counts a commit. Zero phases were not measured.
func (m *metrics) committed(c *weftv1.Counts, revision uint64, p phases) {
	m.commits.Inc()
	if p != (phases{}) {
		m.duration.WithLabelValues("wait").Observe(p.wait.Seconds())
		m.duration.WithLabelValues("build").Observe(p.build.Seconds())
		m.duration.WithLabelValues("kernel").Observe(p.kernel.Seconds())
	}
	m.revision.Set(float64(revision))
	m.changed(c)
}

// worked counts what the state has looked at between two calls.
func (m *metrics) worked(before, after desired.Work) {
	m.work.WithLabelValues(workKeys).Add(float64(after.Keys - before.Keys))
	m.work.WithLabelValues(workRules).Add(float64(after.Rules - before.Rules))
	m.work.WithLabelValues(workObjects).Add(float64(after.Objects - before.Objects))
}

// repaired counts a repair.
func (m *metrics) repaired(c *weftv1.Counts) {
	m.repairs.Inc()
	m.changed(c)
}

func (m *metrics) changed(c *weftv1.Counts) {
	m.elements.WithLabelValues("added").Add(float64(c.GetElementsAdded()))
	m.elements.WithLabelValues("deleted").Add(float64(c.GetElementsDeleted()))
	m.rules.WithLabelValues("added").Add(float64(c.GetRulesAdded()))
	m.rules.WithLabelValues("deleted").Add(float64(c.GetRulesDeleted()))
}

// rejected counts a rejection.
func (m *metrics) rejected(r *RejectedError) {
	reason := weftv1.Violation_REASON_UNSPECIFIED
	if len(r.Violations) > 0 {
		reason = r.Violations[0].GetReason()
	}
	m.rejections.WithLabelValues(m.publisherLabel(r.Fragment.Publisher), reasonLabel(reason)).Inc()
}

// publisherLabel is a publisher as a label value.
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

// reasonLabel is a reason as a label value.
func reasonLabel(r weftv1.Violation_Reason) string {
	switch r {
	case weftv1.Violation_REASON_SYNTAX:
		return "syntax"
	case weftv1.Violation_REASON_INVALID:
		return "invalid"
	case weftv1.Violation_REASON_CONFLICT:
		return "conflict"
	case weftv1.Violation_REASON_REFERENCE:
		return "reference"
	case weftv1.Violation_REASON_KERNEL:
		return "kernel"
	case weftv1.Violation_REASON_PERMISSION:
		return "permission"
	case weftv1.Violation_REASON_LIMIT:
		return "limit"
	case weftv1.Violation_REASON_SNAPSHOT_NEEDED:
		return "snapshot_needed"
	case weftv1.Violation_REASON_TAKEN_OVER:
		return "taken_over"
	case weftv1.Violation_REASON_EXPIRED:
		return "expired"
	case weftv1.Violation_REASON_UNSPECIFIED:
		return "unspecified"
	default:
		return "unknown"
	}
}
