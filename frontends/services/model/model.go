package model

import (
	"cmp"
	"iter"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Config describes the node of the model.
type Config struct {
	NodeName string
	// NodeAddresses override the Node object's addresses if valid (kube-proxy's bindAddress).
	NodeAddresses [NumFamilies]netip.Addr
	// IgnoreExternalIPs ignores spec.externalIPs (feature gate AllowServiceExternalIPs off); see SetIgnoreExternalIPs.
	IgnoreExternalIPs bool
	// Earlier triggers are ignored. The zero time means now.
	Started time.Time
	// nil discards; must not call the model
	Notify func(Notice)
	// nil discards
	Logger *slog.Logger
}

func (c *Config) setDefaults() {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Notify == nil {
		c.Notify = func(Notice) {}
	}
	if c.Started.IsZero() {
		c.Started = time.Now()
	}
}

// Model is the state of all parsed objects.
type Model struct {
	cfg      Config
	records  map[Key]*record
	slices   map[types.NamespacedName]*slice
	cidrs    map[string]*serviceCIDR
	claims   claims
	lists    lists
	report   *reporter
	dirty    map[*record]struct{}
	triggers triggers
	pods     Pods
	// endpoints had the name of this node or of another node
	named struct{ here, elsewhere bool }
	// as of the last event
	this          Node
	nodeFindings  findings
	cidrsDirty    bool
	reportedNode  Node
	reportedCIDRs Prefixes
	stats         Stats
}

// New returns an empty model.
func New(cfg Config) *Model {
	cfg.setDefaults()
	report := &reporter{log: cfg.Logger}
	m := &Model{
		cfg:      cfg,
		records:  make(map[Key]*record),
		slices:   make(map[types.NamespacedName]*slice),
		cidrs:    make(map[string]*serviceCIDR),
		claims:   newClaims(&cfg),
		lists:    lists{largeSize: largeSize, report: report},
		report:   report,
		dirty:    make(map[*record]struct{}),
		triggers: triggers{started: cfg.Started.UnixNano(), of: make(map[Key][]Trigger)},
		this:     Node{Addresses: cfg.NodeAddresses},
	}
	m.pods = Pods{model: m, of: make(map[PodID]PodState), slices: make(map[Key]map[*slice]struct{})}
	return m
}

// SetService stores a Service. No Set method keeps its object.
func (m *Model) SetService(o *corev1.Service) {
	m.stats.ServiceEvents++
	m.stats.Work += uint64(1 + len(o.Spec.Ports))
	key := Key{Namespace: o.Namespace, Name: o.Name}
	s, bad := parseService(o, m.cfg.IgnoreExternalIPs)
	var was *service
	var before findings
	if r := m.records[key]; r != nil && r.parsed != nil {
		was = r.parsed
		before = was.bad
	}
	m.report.findings("Service", key, before, bad)
	if s == nil {
		m.dropService(was)
		return
	}
	s.of = m.recordFor(o.Namespace, o.Name)
	if was == nil || !equalParsed(was, s) {
		if was == nil {
			m.stats.Services++
		}
		s.of.parsed, s.of.merged = s, nil
		m.dirty[s.of] = struct{}{}
		if was == nil || was.publishNotReady != s.publishNotReady {
			for o := s.of.slices; o != nil; o = o.next {
				m.pods.judge(o)
			}
		}
	}
}

// DeleteService removes a Service.
func (m *Model) DeleteService(key Key) {
	m.stats.ServiceEvents++
	if r := m.records[key]; r != nil {
		m.dropService(r.parsed)
	}
}

func (m *Model) dropService(s *service) {
	if s != nil {
		s.of.parsed = nil
		m.stats.Services--
		m.dirty[s.of] = struct{}{}
	}
}

// SetSlice stores an EndpointSlice.
func (m *Model) SetSlice(o *discoveryv1.EndpointSlice) {
	m.stats.SliceEvents++
	m.stats.Work += uint64(1 + len(o.Endpoints))
	name := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	was := m.slices[name]
	s, bad := m.parseSlice(o)
	var before findings
	if was != nil {
		before = was.bad
	}
	m.report.findings("EndpointSlice", name, before, bad)
	if s != nil {
		m.pods.apply(s)
	}
	switch {
	case s == nil:
		m.dropSlice(was)
		return
	case was != nil && equalSlice(was, s):
		was.trigger = s.trigger
		return
	}
	m.triggers.collect(was, s)
	if was != nil && was.of != s.of {
		m.dropSlice(was)
		was = nil
	}
	s.of.link(was, s)
	m.pods.replace(was, s)
	m.lists.update(s.of, was, s)
	m.slices[s.name] = s
	m.dirty[s.of] = struct{}{}
}

// DeleteSlice removes an EndpointSlice.
func (m *Model) DeleteSlice(name types.NamespacedName) {
	m.stats.SliceEvents++
	m.dropSlice(m.slices[name])
}

func (m *Model) dropSlice(s *slice) {
	if s == nil {
		return
	}
	delete(m.slices, s.name)
	s.of.unlink(s)
	m.pods.replace(s, nil)
	m.lists.update(s.of, s, nil)
	m.dirty[s.of] = struct{}{}
}

// Dirty reports whether Refresh has work, possibly without changes.
func (m *Model) Dirty() bool {
	return len(m.dirty) > 0 || m.cidrsDirty || !equalNode(m.this, m.reportedNode)
}

// Refresh computes the Services touched since the last call, and Services with affected claims.
func (m *Model) Refresh() Changes {
	var out Changes
	m.stats.Work += m.claims.resolve(m.dirty)
	for _, r := range sorted(maps.Keys(m.dirty)) {
		old, now := r.outcome, m.compute(r)
		if now == nil {
			r.outcome = nil
			m.forget(r)
		}
		if equalService(old, now) {
			continue
		}
		r.outcome = now
		out.Services = append(out.Services, Change{Name: r.key, Old: old, New: now})
		out.Triggers = append(out.Triggers, m.triggers.of[r.key]...)
	}
	if !equalNode(m.this, m.reportedNode) {
		node := m.this
		out.Node, m.reportedNode = &node, node
		m.stats.NodeChanges++
	}
	if m.cidrsDirty {
		if now := m.serviceCIDRs(); !equalPrefixes(&now, &m.reportedCIDRs) {
			out.ServiceCIDRs, m.reportedCIDRs = &now, now
		}
		m.cidrsDirty = false
	}
	m.reset()
	m.stats.ServiceChanges += uint64(len(out.Services))
	if !out.Empty() {
		m.stats.Revision++
	}
	return out
}

// maxIdleRoom bounds the elements whose memory is kept until the next Refresh.
const maxIdleRoom = 256

// Clearing a map costs its past maximum size.
func (m *Model) reset() {
	if len(m.dirty) > maxIdleRoom {
		m.dirty = make(map[*record]struct{})
	} else {
		clear(m.dirty)
	}
	m.triggers.clear()
	m.lists.shrink()
}

// Service returns a Service as of the last Refresh, or nil.
func (m *Model) Service(key Key) *Service {
	if r := m.records[key]; r != nil {
		return r.outcome
	}
	return nil
}

func (m *Model) Stats() Stats {
	s := m.stats
	s.Slices, s.Skipped, s.Conflicts = len(m.slices), m.report.skipped, m.claims.lost
	s.Work += m.lists.work
	return s
}

// Snapshot returns the state as of the last Refresh.
func (m *Model) Snapshot() Snapshot {
	var names []Key
	for _, r := range sorted(maps.Values(m.records)) {
		names = append(names, r.key)
	}
	return m.Select(names)
}

// Select returns the state with only the named Services, in the given order. Unknown names are ignored.
func (m *Model) Select(names []Key) Snapshot {
	s := Snapshot{
		Revision: m.stats.Revision, Node: m.reportedNode, ServiceCIDRs: m.reportedCIDRs,
		Services: make([]*Service, 0, len(names)),
	}
	for _, key := range names {
		if svc := m.Service(key); svc != nil {
			s.Services = append(s.Services, svc)
		}
	}
	return s
}

func sorted(records iter.Seq[*record]) []*record {
	return slices.SortedFunc(records, func(a, b *record) int { return CompareKeys(a.key, b.key) })
}

// CompareKeys orders Services by namespace and name.
func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func equalService(a, b *Service) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.Created.Equal(b.Created) && a.ClusterIPs == b.ClusterIPs &&
		a.InternalLocal == b.InternalLocal && a.ExternalLocal == b.ExternalLocal && a.Affinity == b.Affinity && a.ExternalIPsIgnored == b.ExternalIPsIgnored &&
		equalPrefixes(&a.SourceRanges, &b.SourceRanges) &&
		a.HealthCheckNodePort == b.HealthCheckNodePort && a.LocalReady == b.LocalReady &&
		slices.EqualFunc(a.Ports, b.Ports, func(a, b Port) bool { return a.Equal(&b) })
}

// Equal reports whether both are the same.
func (p *Port) Equal(o *Port) bool {
	if p.Name != o.Name || p.Protocol != o.Protocol || p.Number != o.Number ||
		p.ClusterIPs != o.ClusterIPs || p.NodePort != o.NodePort {
		return false
	}
	for f := range p.Backends {
		if !slices.Equal(p.External[f], o.External[f]) || !p.Backends[f].Equal(&o.Backends[f]) {
			return false
		}
	}
	return true
}
