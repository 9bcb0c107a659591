package model

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Dirty reports whether Refresh has work, perhaps without a change.
func (m *Model) Dirty() bool {
	return len(m.dirtyPods)+len(m.dirty)+len(m.dirtySets)+len(m.unreported) > 0 || m.nodeChanged()
}

// Refresh computes the affected state, and returns the changes since the last call.
func (m *Model) Refresh() Changes {
	narrowed := make(narrowings)
	out := Changes{Pods: m.refreshPods(narrowed)}
	out.Policies = m.policies.refresh(m.sets, m.outcome, narrowed)
	out.Sets = m.sets.refresh(narrowed)
	if m.nodeChanged() {
		node := m.node.node
		out.Node, m.reportedNode = &node, &node
	}
	out.Narrowed = slices.SortedFunc(maps.Keys(narrowed), netip.Addr.Compare)
	return out
}

func (m *Model) nodeChanged() bool {
	return m.node != nil && (m.reportedNode == nil || !equalNode(&m.node.node, m.reportedNode))
}

func (m *Model) refreshPods(narrowed narrowings) (out []PodChange) {
	for _, uid := range slices.Sorted(maps.Keys(m.dirtyPods)) {
		old, now := m.outcome[uid], m.pod(m.locals[uid])
		if equalPod(old, now) {
			continue
		}
		out = append(out, PodChange{Old: old, New: now})
		m.count(old, -1)
		m.count(now, 1)
		if now == nil {
			delete(m.outcome, uid)
		} else {
			m.outcome[uid] = now
		}
	}
	for _, c := range out {
		m.narrowPod(c, narrowed)
	}
	clear(m.dirtyPods)
	return out
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
		for _, o := range m.claims.at(a) {
			if o.local && older(o, oldest) < 0 {
				oldest = o
			}
		}
		if oldest != p {
			continue
		}
		out.Addresses = append(out.Addresses, a)
		for _, o := range m.claims.at(a) {
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
	for _, q := range m.policies.of(owners) {
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
