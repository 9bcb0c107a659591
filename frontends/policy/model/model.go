package model

import (
	"cmp"
	"fmt"
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

func (c *Config) setDefaults() {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Notify == nil {
		c.Notify = func(Notice) {}
	}
}

// Model is the state, with all objects in parsed form.
type Model struct {
	cfg             Config
	namespaces      map[string]*namespace
	policies        map[PolicyID]*policy
	cidrs           map[string]*ServiceCIDRObject
	labelLists      sharedLists[label]
	portLists       sharedLists[namedPort]
	sandboxes       sandboxes
	claims          claims
	links           links
	locals          map[types.UID]*pod
	clusterPolicies clusterIndex[*policy]      // by the pods that they select
	active          map[PolicyID]*activePolicy // at the last Refresh
	// clusterSets have pods of several namespaces; the others are also in namespace.sets.
	sets        map[SetID]*set
	clusterSets clusterIndex[*set]
	outcome     map[types.UID]*Pod // of the last Refresh

	dirtyPods     map[types.UID]struct{}
	dirtyPolicies map[PolicyID]struct{}
	dirtySets     map[*set]struct{}
	// Invalid policies that select no pod, and so do not become active.
	unreported   map[PolicyID]struct{}
	node         *NodeObject // of the last event
	reportedNode *Node       // of the last Refresh
	// visit counts the walks over sets; each sees a set once.
	visit   uint64
	members []Member
	stats   Stats
}

type namespace struct {
	name     string
	labels   []label
	known    bool // the object exists
	pods     map[string]*pod
	policies labelIndex[*policy]
	sets     labelIndex[*set]
	byLabel  podIndex // pods by labels required by sets; nil until needed
}

type policy struct {
	object *PolicyObject
	parsed *policyRules // nil while inactive
}

func (p *policy) rules() *policyRules {
	if p.parsed == nil {
		p.parsed = p.object.rules()
	}
	return p.parsed
}

// New returns an empty model.
func New(cfg Config) *Model {
	cfg.setDefaults()
	return &Model{
		cfg:           cfg,
		namespaces:    make(map[string]*namespace),
		policies:      make(map[PolicyID]*policy),
		cidrs:         make(map[string]*ServiceCIDRObject),
		labelLists:    newSharedLists(writeLabel),
		portLists:     newSharedLists(writePort),
		sandboxes:     newSandboxes(),
		claims:        claims{one: make(map[netip.Addr]*pod), several: make(map[netip.Addr][]*pod)},
		links:         links{of: make(map[netip.Addr]Link), at: make(map[Link][]netip.Addr)},
		locals:        make(map[types.UID]*pod),
		active:        make(map[PolicyID]*activePolicy),
		sets:          make(map[SetID]*set),
		outcome:       make(map[types.UID]*Pod),
		dirtyPods:     make(map[types.UID]struct{}),
		dirtyPolicies: make(map[PolicyID]struct{}),
		dirtySets:     make(map[*set]struct{}),
		unreported:    make(map[PolicyID]struct{}),
	}
}

// namespace gives a namespace only the label set by the API server until its object is known.
func (m *Model) namespace(name string) *namespace {
	n := m.namespaces[name]
	if n == nil {
		n = &namespace{name: name, labels: []label{{corev1.LabelMetadataName, name}}, pods: make(map[string]*pod)}
		m.namespaces[name] = n
	}
	return n
}

func (m *Model) forgetNamespace(n *namespace) {
	if !n.known && len(n.pods) == 0 && n.policies.empty() && n.sets.empty() {
		delete(m.namespaces, n.name)
	}
}

// SetNamespace stores a Namespace.
func (m *Model) SetNamespace(o *NamespaceObject) {
	m.stats.NamespaceEvents++
	n := m.namespace(o.name)
	if !n.known || !slices.Equal(n.labels, o.labels) {
		if !n.known {
			m.stats.Namespaces++
		}
		m.setNamespace(n, o.labels, true)
	}
}

// DeleteNamespace removes a Namespace, but not its pods and policies.
func (m *Model) DeleteNamespace(name string) {
	m.stats.NamespaceEvents++
	if n := m.namespaces[name]; n != nil && n.known {
		m.stats.Namespaces--
		m.setNamespace(n, []label{{corev1.LabelMetadataName, name}}, false)
		m.forgetNamespace(n)
	}
}

// setNamespace visits only the sets that gain or lose the namespace, and its pods.
func (m *Model) setNamespace(n *namespace, labels []label, known bool) {
	now := &namespace{name: n.name, labels: labels, known: known}
	var affected []*set
	for _, s := range m.sets {
		if s.namespaces != nil && s.matchesNamespace(n) != s.matchesNamespace(now) {
			s.touched = true
			affected = append(affected, s)
		}
	}
	touched := func(s *set) bool { return s.touched }
	var shared map[netip.Addr]struct{}
	if len(affected) > 0 {
		shared = m.sharedAddresses(n)
	}
	for a := range shared {
		m.noteMembers(a, false, touched)
	}
	n.labels, n.known = labels, known
	for a := range shared {
		m.noteMembers(a, true, touched)
	}
	for _, s := range affected {
		s.touched = false
		m.noteNamespace(s, n)
	}
	for _, p := range n.pods {
		if p.local {
			m.touchPod(p)
		}
	}
}

func (m *Model) sharedAddresses(n *namespace) map[netip.Addr]struct{} {
	out := make(map[netip.Addr]struct{})
	if len(m.claims.several) == 0 {
		return out
	}
	for _, p := range n.pods {
		for _, a := range p.addresses() {
			if m.claims.several[a] != nil {
				out[a] = struct{}{}
			}
		}
	}
	return out
}

func (m *Model) noteNamespace(s *set, n *namespace) {
	gained := s.matchesNamespace(n)
	for _, p := range n.pods {
		if s.local && !p.local || !s.pods.matches(p.labels.values) {
			continue
		}
		for _, a := range p.addresses() {
			if m.claims.several[a] != nil {
				continue
			}
			m.members = s.appendMembers(m.members[:0], p, a)
			for _, member := range m.members {
				s.note(member, gained)
				m.dirtySets[s] = struct{}{}
			}
		}
	}
}

// SetPolicy stores a NetworkPolicy.
func (m *Model) SetPolicy(o *PolicyObject) { m.setPolicy(o.id, o) }

// DeletePolicy removes a NetworkPolicy.
func (m *Model) DeletePolicy(name types.NamespacedName) {
	m.setPolicy(PolicyID{Tier: TierNetworkPolicy, Namespace: name.Namespace, Name: name.Name}, nil)
}

// A nil o removes the policy.
func (m *Model) setPolicy(id PolicyID, o *PolicyObject) {
	m.stats.PolicyEvents++
	p := m.policies[id]
	if p != nil && o != nil && p.object.equal(o) {
		return
	}
	if p != nil {
		m.touchSubjects(p.object)
		m.indexPolicy(p, false)
	}
	if o == nil {
		delete(m.policies, id)
	} else {
		if p == nil {
			p = &policy{object: &PolicyObject{}}
			m.policies[id] = p
		}
		m.logFindings(id.Kind(), types.NamespacedName{Namespace: id.Namespace, Name: id.Name}, p.object.bad, o.bad)
		p.object, p.parsed = o, nil
		m.indexPolicy(p, true)
		m.touchSubjects(o)
		if o.directions == [NumDirections]bool{} && len(o.bad) > 0 {
			m.unreported[id] = struct{}{}
		}
	}
	if m.active[id] != nil {
		m.dirtyPolicies[id] = struct{}{}
	}
}

func (m *Model) indexPolicy(p *policy, add bool) {
	o := p.object
	n := m.namespace(o.id.Namespace)
	if in, by := m.clusterPolicies.of(o.namespaces, o.pods, &n.policies); add {
		in.add(by, p)
	} else {
		in.remove(by, p)
	}
	m.forgetNamespace(n)
}

func (m *Model) touchSubjects(o *PolicyObject) {
	for _, p := range m.locals {
		if o.selects(p) {
			m.touchPod(p)
		}
	}
}

func (m *Model) policiesOf(p *pod, f func(*PolicyObject)) {
	check := func(q *policy) {
		if q.object.selects(p) {
			f(q.object)
		}
	}
	p.namespace.policies.each(p.labels.values, check)
	m.clusterPolicies.each(p.namespace.labels, p.labels.values, check)
}

// SetNode stores the Node of this node and ignores other Nodes.
func (m *Model) SetNode(o *NodeObject) {
	m.stats.NodeEvents++
	if o.node.Name != m.cfg.NodeName {
		return
	}
	was := cmp.Or(m.node, &NodeObject{})
	m.logFindings("Node", types.NamespacedName{Name: o.node.Name}, was.bad, o.bad)
	m.node = o
	if !slices.Equal(was.node.Addresses, o.node.Addresses) {
		m.reclaim()
	}
}

// DeleteNode counts an event: the node keeps its addresses.
func (m *Model) DeleteNode(string) { m.stats.NodeEvents++ }

// SetServiceCIDR stores a ServiceCIDR.
func (m *Model) SetServiceCIDR(o *ServiceCIDRObject) {
	m.stats.ServiceCIDREvents++
	was := cmp.Or(m.cidrs[o.name], &ServiceCIDRObject{})
	m.logFindings("ServiceCIDR", types.NamespacedName{Name: o.name}, was.bad, o.bad)
	m.cidrs[o.name] = o
	if !slices.Equal(was.ranges, o.ranges) {
		m.reclaim()
	}
}

// DeleteServiceCIDR removes a ServiceCIDR.
func (m *Model) DeleteServiceCIDR(name string) {
	m.stats.ServiceCIDREvents++
	if m.cidrs[name] != nil {
		delete(m.cidrs, name)
		m.reclaim()
	}
}

func (m *Model) unusable(a netip.Addr) error {
	if m.node != nil && slices.Contains(m.node.node.Addresses, a) {
		return fmt.Errorf("%s is an address of the node", a)
	}
	for _, c := range m.cidrs {
		for _, p := range c.ranges {
			if p.Contains(a) {
				return fmt.Errorf("%s is in %s of ServiceCIDR %s", a, p, c.name)
			}
		}
	}
	return nil
}
