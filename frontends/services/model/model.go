package model

import (
	"cmp"
	"log/slog"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Config says for which node the model is.
type Config struct {
	// NodeName is the name of this node; endpoints with it are local.
	NodeName string
	// NodeAddresses are used in place of those of the Node object, where valid
	// (kube-proxy's bindAddress).
	NodeAddresses [Families]netip.Addr
	// IgnoreExternalIPs leaves spec.externalIPs out (feature gate
	// AllowServiceExternalIPs off).
	IgnoreExternalIPs bool
	// Notify is told of conflicts between Services; nil means nobody is. It is
	// called from SetX and Refresh and must not call back.
	Notify func(Notice)
	// Logger gets a line for everything that is left out; nil discards.
	Logger *slog.Logger
}

// Model is the state, the inputs in parsed form included.
type Model struct {
	node     string
	log      *slog.Logger
	services map[Key]*service
	slices   map[types.NamespacedName]*slice
	// byService has the slices of each Service, whether it exists or not.
	byService map[Key]map[*slice]struct{}
	claims    claims
	// contested are the Services as claims has them.
	contested map[Key]*service
	dirty     map[Key]struct{}
	// current is the outcome of the last Refresh.
	current   map[Key]*Service
	this      Node
	nodeDirty bool
	stats     Stats
	scratch   []candidate
}

// New returns an empty model.
func New(cfg Config) *Model {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Model{
		node:      cfg.NodeName,
		log:       cfg.Logger,
		services:  make(map[Key]*service),
		slices:    make(map[types.NamespacedName]*slice),
		byService: make(map[Key]map[*slice]struct{}),
		claims:    make(claims),
		contested: make(map[Key]*service),
		dirty:     make(map[Key]struct{}),
		current:   make(map[Key]*Service),
	}
}

// SetService takes a Service as it is now.
func (m *Model) SetService(o *corev1.Service) {
	m.stats.ServiceEvents++
	key := Key{Namespace: o.Namespace, Name: o.Name}
	s := m.parseService(o)
	switch {
	case s != nil:
		m.services[key] = s
	case m.services[key] != nil:
		delete(m.services, key)
	default:
		return
	}
	m.dirty[key] = struct{}{}
}

// DeleteService takes a Service away.
func (m *Model) DeleteService(key Key) {
	m.stats.ServiceEvents++
	if _, ok := m.services[key]; ok {
		delete(m.services, key)
		m.dirty[key] = struct{}{}
	}
}

// SetSlice takes an EndpointSlice as it is now.
func (m *Model) SetSlice(o *discoveryv1.EndpointSlice) {
	m.stats.SliceEvents++
	name := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	m.dropSlice(name)
	s := m.parseSlice(o)
	if s == nil {
		return
	}
	m.slices[name] = s
	of := m.byService[s.service]
	if of == nil {
		of = make(map[*slice]struct{}, 1)
		m.byService[s.service] = of
	}
	of[s] = struct{}{}
	m.dirty[s.service] = struct{}{}
}

// DeleteSlice takes an EndpointSlice away.
func (m *Model) DeleteSlice(name types.NamespacedName) {
	m.stats.SliceEvents++
	m.dropSlice(name)
}

func (m *Model) dropSlice(name types.NamespacedName) {
	s := m.slices[name]
	if s == nil {
		return
	}
	delete(m.slices, name)
	of := m.byService[s.service]
	delete(of, s)
	if len(of) == 0 {
		delete(m.byService, s.service)
	}
	m.dirty[s.service] = struct{}{}
}

// SetNode takes the Node as it is now; other nodes than this one are ignored.
func (m *Model) SetNode(o *corev1.Node) {
	m.stats.NodeEvents++
	if o.Name != m.node {
		return
	}
	n := m.parseNode(o)
	if !equalNode(n, m.this) {
		m.this, m.nodeDirty = n, true
	}
}

// DeleteNode does nothing but count: while its object is away the node keeps
// its addresses.
func (m *Model) DeleteNode(name string) {
	m.stats.NodeEvents++
	if name == m.node {
		m.log.Warn("node object is gone: its last known addresses stay", "node", name)
	}
}

// SetServiceCIDR takes a ServiceCIDR as it is now.
func (m *Model) SetServiceCIDR(o *networkingv1.ServiceCIDR) {
	m.stats.ServiceCIDREvents++
}

// DeleteServiceCIDR takes a ServiceCIDR away.
func (m *Model) DeleteServiceCIDR(name string) {
	m.stats.ServiceCIDREvents++
}

// Dirty reports whether Refresh has anything to look at.
func (m *Model) Dirty() bool { return len(m.dirty) > 0 || m.nodeDirty }

// Refresh computes the Services that events have touched since the last time,
// and those whose claims that affects.
func (m *Model) Refresh() Changes {
	var out Changes
	for _, key := range m.contest(sortedKeys(m.dirty)) {
		old, now := m.current[key], m.compute(key)
		if equalService(old, now) {
			continue
		}
		if now == nil {
			delete(m.current, key)
		} else {
			m.current[key] = now
		}
		out.Services = append(out.Services, Change{Name: key, Old: old, New: now})
	}
	clear(m.dirty)
	if m.nodeDirty {
		node := m.this
		out.Node, m.nodeDirty = &node, false
		m.stats.NodeChanges++
	}
	m.stats.ServiceChanges += uint64(len(out.Services))
	if !out.Empty() {
		m.stats.Revision++
	}
	return out
}

// Service returns a Service as Refresh last computed it, nil if there is none.
func (m *Model) Service(key Key) *Service { return m.current[key] }

// Node returns this node.
func (m *Model) Node() Node { return m.this }

// Stats returns the counters.
func (m *Model) Stats() Stats { return m.stats }

// Snapshot returns the whole state as Refresh last computed it.
func (m *Model) Snapshot() Snapshot {
	s := Snapshot{Revision: m.stats.Revision, Node: m.this, Services: make([]*Service, 0, len(m.current))}
	for _, key := range sortedKeys(m.current) {
		s.Services = append(s.Services, m.current[key])
	}
	return s
}

// skip reports a part of an object that is left out.
func (m *Model) skip(kind string, name Key, field string, why error) {
	m.stats.Skipped++
	m.log.Warn("object has a bad field: left out", "kind", kind, "namespace", name.Namespace, "name", name.Name, "field", field, "error", why)
}

func sortedKeys[V any](in map[Key]V) []Key {
	keys := slices.Collect(maps.Keys(in))
	slices.SortFunc(keys, CompareKeys)
	return keys
}

// CompareKeys orders Services by namespace and name.
func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func equalNode(a, b Node) bool {
	return a.Known == b.Known && a.Name == b.Name &&
		a.Addresses == b.Addresses
}

func equalService(a, b *Service) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.Created.Equal(b.Created) && a.ClusterIPs == b.ClusterIPs &&
		a.InternalLocal == b.InternalLocal && a.ExternalLocal == b.ExternalLocal &&
		slices.EqualFunc(a.Ports, b.Ports, equalPort)
}

func equalPort(a, b Port) bool {
	if a.Name != b.Name || a.Protocol != b.Protocol || a.Number != b.Number ||
		a.ClusterIPs != b.ClusterIPs || a.NodePort != b.NodePort {
		return false
	}
	for f := range a.Backends {
		x, y := &a.Backends[f], &b.Backends[f]
		if !slices.Equal(x.Cluster, y.Cluster) || !slices.Equal(x.Local, y.Local) || !slices.Equal(x.Draining, y.Draining) {
			return false
		}
	}
	return true
}

// parseNode takes the addresses of a Node.
func (m *Model) parseNode(o *corev1.Node) Node {
	n := Node{Known: true, Name: o.Name}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for i, a := range o.Status.Addresses {
			if a.Type != kind {
				continue
			}
			addr, err := parseAddr(a.Address)
			if err != nil {
				m.skip("Node", Key{Name: o.Name}, index("status.addresses", i)+".address", err)
				continue
			}
			if f := FamilyOf(addr); !n.Addresses[f].IsValid() {
				n.Addresses[f] = addr
			}
		}
	}
	return n
}
