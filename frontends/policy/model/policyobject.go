package model

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// PolicyObject is what the model keeps of a NetworkPolicy or a ClusterNetworkPolicy. It is
// immutable, and refers to nothing of the API object.
type PolicyObject struct {
	policy *Policy
	uid    types.UID
	// directions are those in which the policy applies.
	directions [NumDirections]bool
	// namespaces is nil for a NetworkPolicy, whose pods are in its own namespace.
	namespaces *selector
	pods       *selector
	// sets are those that the rules name.
	sets map[SetID]*selection
	bad  findings
}

// Kind returns that of the API object.
func (id PolicyID) Kind() string {
	if id.Tier == TierNetworkPolicy {
		return "NetworkPolicy"
	}
	return "ClusterNetworkPolicy"
}

// selects reports whether the policy applies to a pod.
func (o *PolicyObject) selects(p *pod) bool {
	if o.namespaces == nil {
		return p.namespace.name == o.policy.ID.Namespace && o.pods.matches(p.labels.labels)
	}
	return o.namespaces.matches(p.namespace.labels) && o.pods.matches(p.labels.labels)
}

// set returns the ID of a set, and remembers what selects its members.
func (o *PolicyObject) set(s selection) SetID {
	id := SetID(s.text())
	if o.sets == nil {
		o.sets = make(map[SetID]*selection)
	}
	if _, ok := o.sets[id]; !ok {
		o.sets[id] = &s
	}
	return id
}

// equal reports whether two forms of a policy mean the same.
func (o *PolicyObject) equal(b *PolicyObject) bool {
	sameNamespaces := (o.namespaces == nil) == (b.namespaces == nil) && (o.namespaces == nil || o.namespaces.text == b.namespaces.text)
	return sameNamespaces && o.uid == b.uid && o.pods.text == b.pods.text && o.directions == b.directions && slices.Equal(o.bad, b.bad) && equalPolicy(o.policy, b.policy)
}

func equalPolicy(a, b *Policy) bool {
	if a.ID != b.ID || a.Priority != b.Priority {
		return false
	}
	for d := range a.Rules {
		if !slices.EqualFunc(a.Rules[d], b.Rules[d], func(x, y Rule) bool { return x.Name == y.Name && equalMatch(&x, &y) }) {
			return false
		}
	}
	return true
}

// equalMatch reports whether two rules do the same, whatever their names.
func equalMatch(a, b *Rule) bool {
	return a.Action == b.Action && a.Any == b.Any && a.AllPorts == b.AllPorts && slices.Equal(a.Pods, b.Pods) &&
		slices.Equal(a.Blocks, b.Blocks) && slices.Equal(a.Ports, b.Ports) && slices.Equal(a.NamedPorts, b.NamedPorts)
}
