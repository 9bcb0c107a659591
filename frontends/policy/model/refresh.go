package model

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

type activePolicy struct {
	pods     int     // lists of pods that name the policy
	reported *Policy // nil if inactive at the last Refresh
	sets     []*set  // of reported
}

// Dirty reports whether Refresh has work, perhaps without a change.
func (m *Model) Dirty() bool {
	return len(m.dirtyPods)+len(m.dirtyPolicies)+len(m.dirtySets)+len(m.unreported) > 0 || m.nodeChanged()
}

// Refresh computes the affected state, and returns the changes since the last call.
func (m *Model) Refresh() Changes {
	var out Changes
	narrowed := make(narrowings)
	m.refreshPods(&out, narrowed)
	m.refreshPolicies(&out, narrowed)
	m.refreshSets(&out, narrowed)
	for id := range m.unreported {
		if p := m.policies[id]; p != nil {
			m.reportPolicy(p.object)
		}
	}
	clear(m.unreported)
	if m.nodeChanged() {
		node := m.node.node
		out.Node, m.reportedNode = &node, &node
	}
	out.Narrowed = slices.SortedFunc(maps.Keys(narrowed), netip.Addr.Compare)
	if !out.Empty() {
		m.stats.Revision++
	}
	return out
}

func (m *Model) nodeChanged() bool {
	return m.node != nil && (m.reportedNode == nil || !equalNode(&m.node.node, m.reportedNode))
}

func (m *Model) refreshPods(out *Changes, narrowed narrowings) {
	for _, uid := range slices.Sorted(maps.Keys(m.dirtyPods)) {
		old, now := m.outcome[uid], m.pod(m.locals[uid])
		if equalPod(old, now) {
			continue
		}
		out.Pods = append(out.Pods, PodChange{Old: old, New: now})
		m.countPolicies(old, -1)
		m.countPolicies(now, 1)
		if now == nil {
			delete(m.outcome, uid)
		} else {
			m.outcome[uid] = now
		}
	}
	for _, c := range out.Pods {
		m.narrowPod(c, narrowed)
	}
	clear(m.dirtyPods)
}

// pod returns nil without a pod, or if it owns no address. Policies of other pods with the address
// also apply.
func (m *Model) pod(p *pod) *Pod {
	if p == nil {
		return nil
	}
	out := &Pod{UID: p.uid, Name: p.name}
	owners := []*pod{p}
	for _, a := range p.addresses() {
		oldest := p
		for _, o := range m.claimants(a) {
			if o.local && older(o, oldest) < 0 {
				oldest = o
			}
		}
		if oldest != p {
			continue
		}
		out.Addresses = append(out.Addresses, a)
		for _, o := range m.claimants(a) {
			if o.local && !slices.Contains(owners, o) {
				owners = append(owners, o)
			}
		}
	}
	if len(out.Addresses) == 0 {
		return nil
	}
	var more []netip.Addr
	out.Link, more = m.linkOf(out.Addresses)
	out.Addresses = append(out.Addresses, more...)
	var policies []*PolicyObject
	for _, o := range owners {
		m.policiesOf(o, func(q *PolicyObject) { policies = append(policies, q) })
	}
	slices.SortFunc(policies, func(a, b *PolicyObject) int {
		return cmp.Or(cmp.Compare(a.id.Tier, b.id.Tier), cmp.Compare(a.priority, b.priority), ComparePolicies(a.id, b.id))
	})
	for _, q := range slices.Compact(policies) {
		for d, applies := range q.directions {
			if applies {
				out.Policies[d] = append(out.Policies[d], q.id)
			}
		}
	}
	return out
}

// ComparePolicies orders policies by tier, namespace and name.
func ComparePolicies(a, b PolicyID) int {
	return cmp.Or(cmp.Compare(a.Tier, b.Tier), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func equalPod(a, b *Pod) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.Name == b.Name && slices.Equal(a.Addresses, b.Addresses) && a.Link == b.Link &&
		slices.Equal(a.Policies[Ingress], b.Policies[Ingress]) && slices.Equal(a.Policies[Egress], b.Policies[Egress])
}

func (m *Model) countPolicies(p *Pod, n int) {
	if p == nil {
		return
	}
	for d := range p.Policies {
		for _, id := range p.Policies[d] {
			a := m.active[id]
			if a == nil {
				a = &activePolicy{}
				m.active[id] = a
			}
			a.pods += n
			m.dirtyPolicies[id] = struct{}{}
		}
	}
}

func (m *Model) refreshPolicies(out *Changes, narrowed narrowings) {
	var released []*set
	for _, id := range slices.SortedFunc(maps.Keys(m.dirtyPolicies), ComparePolicies) {
		a := m.active[id]
		var now *Policy
		var rules *policyRules
		p := m.policies[id]
		if a.pods > 0 {
			rules = p.rules()
			now = rules.policy
		} else {
			delete(m.active, id)
			if p != nil {
				p.parsed = nil
			}
		}
		if a.reported == now {
			continue
		}
		if a.reported == nil || now == nil || !equalPolicy(a.reported, now) {
			out.Policies = append(out.Policies, PolicyChange{Old: a.reported, New: now})
		}
		if a.reported != nil && now != nil {
			m.narrowPolicy(a.reported, now, narrowed)
		}
		released = append(released, a.sets...)
		a.reported, a.sets = now, nil
		if rules != nil {
			for _, sid := range slices.Sorted(maps.Keys(rules.sets)) {
				a.sets = append(a.sets, m.useSet(sid, rules.sets[sid]))
			}
			m.reportPolicy(p.object)
		}
	}
	for _, s := range released {
		// Refresh removes unused sets at its end.
		s.users--
		m.dirtySets[s] = struct{}{}
	}
	clear(m.dirtyPolicies)
}

func (m *Model) refreshSets(out *Changes, narrowed narrowings) {
	var added []*set
	for s := range m.dirtySets {
		if s.users > 0 && !s.reported {
			added = append(added, s)
		}
	}
	m.fill(added)
	for s := range m.dirtySets {
		c := SetChange{New: s.public}
		switch {
		case s.users == 0:
			m.removeSet(s)
			c = SetChange{Old: s.public}
			m.stats.Members -= s.size
			s.size = 0
			if !s.reported {
				continue
			}
		case !s.reported:
			c.Added, s.initial = s.initial, nil
			s.reported = true
		default:
			c.Old = s.public
			for member, added := range s.delta {
				if added {
					c.Added = append(c.Added, member)
				} else {
					c.Removed = append(c.Removed, member)
				}
			}
			slices.SortFunc(c.Added, CompareMembers)
			slices.SortFunc(c.Removed, CompareMembers)
			narrowed.set(s, &c)
			if len(c.Added)+len(c.Removed) == 0 {
				continue
			}
		}
		s.delta = nil
		s.size += len(c.Added) - len(c.Removed)
		m.stats.Members += len(c.Added) - len(c.Removed)
		out.Sets = append(out.Sets, c)
	}
	slices.SortFunc(out.Sets, func(a, b SetChange) int { return strings.Compare(string(a.id()), string(b.id())) })
	if len(m.dirtySets) > 256 {
		m.dirtySets = make(map[*set]struct{})
	}
	clear(m.dirtySets)
}

func (c *SetChange) id() SetID {
	if c.New != nil {
		return c.New.ID
	}
	return c.Old.ID
}

const reporters = 3

func (m *Model) reportPolicy(o *PolicyObject) {
	message := o.Problem()
	if message == "" {
		return
	}
	m.cfg.Notify(Notice{
		Kind: o.id.Kind(), Name: types.NamespacedName{Namespace: o.id.Namespace, Name: o.id.Name}, UID: o.uid, Reason: InvalidPolicy,
		Message: message, Reporter: m.reports(o),
	})
}

// Problem describes the invalid parts of the policy and their effect; it is empty for a valid
// policy.
func (o *PolicyObject) Problem() string {
	if len(o.bad) == 0 {
		return ""
	}
	effect := "The policy is in force without its invalid parts, which accept nothing: "
	switch {
	case o.directions == [NumDirections]bool{}:
		effect = "The policy is not in force: "
	case o.id.Tier != TierNetworkPolicy:
		effect = "The policy is in force, but a rule with an invalid or unknown part matches nothing if it accepts, and denies everything otherwise: "
	}
	return effect + strings.Join(o.bad.texts(), "; ") + "."
}

func (m *Model) reports(o *PolicyObject) bool {
	var first []*pod
	for _, n := range m.namespaces {
		if o.namespaces == nil && n.name != o.id.Namespace {
			continue
		}
		for _, p := range n.pods {
			if o.selects(p) {
				first = append(first, p)
			}
		}
	}
	slices.SortFunc(first, func(a, b *pod) int { return cmp.Compare(a.uid, b.uid) })
	return slices.ContainsFunc(first[:min(len(first), reporters)], func(p *pod) bool { return p.local })
}
