package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Snapshot is the immutable outcome at one revision, sorted like Changes.
type Snapshot struct {
	// Revision is Stats.Revision, not the revision of a commit.
	Revision uint64
	Node     Node
	Pods     []*Pod
	Policies []PolicyState
	Sets     []SetState
}

// PolicyState is a policy that applies to a pod of this node.
type PolicyState struct {
	*Policy
	// Such as "spec.ingress[0].ports[0]: port 0 is not in 1 to 65535".
	Problems []string
}

// SetState is a set that a policy of this node names.
type SetState struct {
	Set
	// Size is the number of members.
	Size int
}

// Snapshot returns the whole outcome as of the last Refresh.
func (m *Model) Snapshot() Snapshot {
	out := Snapshot{Revision: m.stats.Revision}
	if m.reportedNode != nil {
		out.Node = *m.reportedNode
	}
	out.Pods = m.Pods()
	for _, id := range slices.SortedFunc(maps.Keys(m.active), ComparePolicies) {
		if state := (PolicyState{Policy: m.Policy(id)}); state.Policy != nil {
			if q := m.policies[id]; q != nil {
				state.Problems = q.object.bad.texts()
			}
			out.Policies = append(out.Policies, state)
		}
	}
	for _, s := range m.sets {
		if s.reported {
			out.Sets = append(out.Sets, SetState{Set: *s.public, Size: s.size})
		}
	}
	slices.SortFunc(out.Sets, func(a, b SetState) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out
}

// Policy returns a policy as of the last Refresh, or nil.
func (m *Model) Policy(id PolicyID) *Policy {
	if a := m.active[id]; a != nil {
		return a.reported
	}
	return nil
}

// Pods returns the local pods as of the last Refresh, sorted by UID.
func (m *Model) Pods() []*Pod {
	return slices.SortedFunc(maps.Values(m.outcome), func(a, b *Pod) int { return cmp.Compare(a.UID, b.UID) })
}

// Members walks over the pods of all possible namespaces for a set in use.
func (m *Model) Members(id SetID) []Member {
	s := m.sets[id]
	if s == nil {
		return nil
	}
	return m.allMembers(s)
}

// Stats count the events and their outcome.
type Stats struct {
	PodEvents         uint64
	SandboxEvents     uint64
	NamespaceEvents   uint64
	PolicyEvents      uint64
	NodeEvents        uint64
	ServiceCIDREvents uint64
	// Revision counts the calls of Refresh with a change in this process.
	Revision uint64
	Invalid  uint64
	// Pods counts pods of the cluster with an own address.
	Pods       int
	Namespaces int
	Policies   int
	// Sandboxes counts pods reported by the container runtime.
	Sandboxes      int
	LocalPods      int
	ActivePolicies int
	Sets           int
	Members        int
	// SharedAddresses counts addresses with several pods.
	SharedAddresses int
}

// Stats returns the counters.
func (m *Model) Stats() Stats {
	s := m.stats
	s.Policies, s.LocalPods, s.ActivePolicies, s.Sets = len(m.policies), len(m.outcome), len(m.active), len(m.sets)
	s.SharedAddresses, s.Sandboxes = len(m.claims.several), len(m.sandboxes.byID)
	return s
}
