package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Snapshot is the immutable outcome as of the last Refresh, sorted like Changes.
type Snapshot struct {
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
	var out Snapshot
	if m.reportedNode != nil {
		out.Node = *m.reportedNode
	}
	out.Pods = slices.SortedFunc(maps.Values(m.outcome), func(a, b *Pod) int { return cmp.Compare(a.UID, b.UID) })
	for _, id := range slices.SortedFunc(maps.Keys(m.active), ComparePolicies) {
		if state := (PolicyState{Policy: m.Policy(id)}); state.Policy != nil {
			if q := m.policies.byID[id]; q != nil {
				state.Problems = q.object.bad.texts()
			}
			out.Policies = append(out.Policies, state)
		}
	}
	for _, s := range m.sets.byID {
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

// Stats are numbers of objects.
type Stats struct {
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
}

func (m *Model) Stats() Stats {
	return Stats{
		Pods: m.cluster.pods, Namespaces: m.known, Policies: len(m.policies.byID), Sandboxes: len(m.sandboxes.byID),
		LocalPods: len(m.outcome), ActivePolicies: len(m.active), Sets: len(m.sets.byID), Members: m.sets.members,
	}
}
