package model

import (
	"bytes"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PolicyObject is what the model keeps of a NetworkPolicy or a ClusterNetworkPolicy. It is
// immutable, and refers to nothing of the API object.
type PolicyObject struct {
	id       PolicyID
	uid      types.UID
	priority int32
	// directions are those in which the policy applies.
	directions [NumDirections]bool
	// namespaces is nil for a NetworkPolicy, whose pods are in its own namespace.
	namespaces *selector
	pods       *selector
	// spec has the rules of a NetworkPolicy in protobuf, so that one that is not active needs
	// little memory. parsed has those of a ClusterNetworkPolicy.
	spec   []byte
	parsed *policyRules
	bad    findings
}

// policyRules are the rules of a policy in parsed form.
type policyRules struct {
	policy *Policy
	// sets are those that the rules name.
	sets map[SetID]*selection
	// tooMany is true if the rules name more than maxSets. Then they are not complete.
	tooMany bool
}

// maxSets is how many sets the rules of a policy name at most: one for each distinct selector
// of pods, and one for each named port at each selector where it is resolved. The kernel
// looks for a set in a list of all, so that tens of thousands would delay every update.
const maxSets = 1000

// errTooManySets means that the rules of a policy name more than maxSets.
var errTooManySets = fmt.Errorf("the rules name more than %d distinct selectors and named ports: none of them accepts anything", maxSets)

// Kind returns that of the API object.
func (id PolicyID) Kind() string {
	if id.Tier == TierNetworkPolicy {
		return "NetworkPolicy"
	}
	return "ClusterNetworkPolicy"
}

// newRules returns no rules for a policy.
func (o *PolicyObject) newRules() *policyRules {
	return &policyRules{policy: &Policy{ID: o.id, Priority: o.priority}, sets: make(map[SetID]*selection)}
}

// rules returns the rules of a policy. For a NetworkPolicy it parses them.
func (o *PolicyObject) rules() *policyRules {
	if o.parsed != nil {
		return o.parsed
	}
	out, bad := o.newRules(), findings{}
	var spec networkingv1.NetworkPolicySpec
	if spec.Unmarshal(o.spec) != nil {
		// ParsePolicy has encoded it. If it cannot be read all the same, no rules accept
		// nothing.
		return out
	}
	o.parseRules(&spec, out, &bad)
	return out
}

// selects reports whether the policy applies to a pod.
func (o *PolicyObject) selects(p *pod) bool {
	if o.namespaces == nil {
		return p.namespace.name == o.id.Namespace && o.pods.matches(p.labels.values)
	}
	return o.namespaces.matches(p.namespace.labels) && o.pods.matches(p.labels.values)
}

// set appends the ID of a set, and remembers what selects its members. It appends nothing
// once there are too many.
func (r *policyRules) set(ids []SetID, s selection) []SetID {
	if r.tooMany {
		return ids
	}
	id := SetID(s.text())
	if _, ok := r.sets[id]; !ok {
		if r.tooMany = len(r.sets) == maxSets; r.tooMany {
			return ids
		}
		r.sets[id] = &s
	}
	return append(ids, id)
}

// equal reports whether two forms of a policy mean the same.
func (o *PolicyObject) equal(b *PolicyObject) bool {
	return o.id == b.id && o.uid == b.uid && o.priority == b.priority && o.directions == b.directions &&
		equalSelector(o.namespaces, b.namespaces) && equalSelector(o.pods, b.pods) && slices.Equal(o.bad, b.bad) &&
		bytes.Equal(o.spec, b.spec) && (o.parsed == nil || equalPolicy(o.parsed.policy, b.parsed.policy))
}

func equalSelector(a, b *selector) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.text == b.text
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
