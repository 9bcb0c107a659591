package model

import (
	"cmp"
	"log/slog"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Config describes the node of the model.
type Config struct {
	NodeName string
	// Notify must not call the model; nil discards.
	Notify func(Notice)
	// Logger may be nil.
	Logger *slog.Logger
}

// Model is the state, with all objects in parsed form.
type Model struct {
	*cluster
	*reserved
	*reporter
	*sets
	*pods
	*policies
	outcome      map[types.UID]*Pod // of the last Refresh
	reportedNode *Node              // of the last Refresh
	known        int                // number of Namespaces
}

// New returns an empty model.
func New(cfg Config) *Model {
	if cfg.Notify == nil {
		cfg.Notify = func(Notice) {}
	}
	c := &cluster{
		nodeName: cfg.NodeName, namespaces: make(map[string]*namespace), locals: make(map[types.UID]*pod),
		claims:    claims{one: make(map[netip.Addr]*pod), several: make(map[netip.Addr][]*pod)},
		links:     links{of: make(map[netip.Addr]Link), at: make(map[Link][]netip.Addr)},
		dirtyPods: make(map[types.UID]struct{}),
	}
	m := &Model{
		cluster:  c,
		reserved: &reserved{cidrs: make(map[string]*ServiceCIDRObject)},
		reporter: &reporter{notify: cfg.Notify, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))},
		sets:     &sets{cluster: c, byID: make(map[SetID]*set), dirtySets: make(map[*set]struct{})},
		outcome:  make(map[types.UID]*Pod),
	}
	m.pods = &pods{
		cluster: c, sets: m.sets, reserved: m.reserved, reporter: m.reporter, sandboxes: newSandboxes(),
		labelLists: newSharedLists(writeLabel), portLists: newSharedLists(writePort),
	}
	m.policies = newPolicies(c, m.reporter)
	return m
}

// SetNamespace stores a Namespace.
func (m *Model) SetNamespace(o *NamespaceObject) {
	n := m.namespace(o.name)
	if !n.known || !slices.Equal(n.labels, o.labels) {
		if !n.known {
			m.known++
		}
		m.relabel(n, o.labels, true)
	}
}

// DeleteNamespace removes a Namespace, but not its pods and policies.
func (m *Model) DeleteNamespace(name string) {
	if n := m.namespaces[name]; n != nil && n.known {
		m.known--
		m.relabel(n, []label{{corev1.LabelMetadataName, name}}, false)
		m.forgetNamespace(n)
	}
}

// SetNode stores the Node of this node and ignores other Nodes. The node keeps its addresses if its
// Node is deleted.
func (m *Model) SetNode(o *NodeObject) {
	if o.node.Name != m.nodeName {
		return
	}
	was := cmp.Or(m.node, &NodeObject{})
	m.findings("Node", types.NamespacedName{Name: o.node.Name}, was.bad, o.bad)
	m.node = o
	if !slices.Equal(was.node.Addresses, o.node.Addresses) {
		m.reclaim()
	}
}

// SetServiceCIDR stores a ServiceCIDR.
func (m *Model) SetServiceCIDR(o *ServiceCIDRObject) {
	was := cmp.Or(m.cidrs[o.name], &ServiceCIDRObject{})
	m.findings("ServiceCIDR", types.NamespacedName{Name: o.name}, was.bad, o.bad)
	m.cidrs[o.name] = o
	if !slices.Equal(was.ranges, o.ranges) {
		m.reclaim()
	}
}

// DeleteServiceCIDR removes a ServiceCIDR.
func (m *Model) DeleteServiceCIDR(name string) {
	if m.cidrs[name] != nil {
		delete(m.cidrs, name)
		m.reclaim()
	}
}
