package model

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PolicyObject is the immutable, parsed form of a NetworkPolicy or a ClusterNetworkPolicy.
type PolicyObject struct {
	id         PolicyID
	uid        types.UID
	priority   int32
	directions [NumDirections]bool
	// Nil for a NetworkPolicy.
	namespaces *selector
	pods       *selector
	// spec has the rules of a NetworkPolicy in protobuf, to save memory; parsed has the rules of a
	// ClusterNetworkPolicy.
	spec   []byte
	parsed *policyRules
	bad    findings
}

type policyRules struct {
	policy *Policy
	sets   map[SetID]*selection
	// tooMany means that the rules are incomplete.
	tooMany bool
}

// maxSets limits the sets of a policy: one for each selector of pods, and for each named port and
// selector. The kernel searches a list of all sets: tens of thousands would delay every update.
const maxSets = 1000

var errTooManySets = fmt.Errorf("the rules name more than %d distinct selectors and named ports: none of them accepts anything", maxSets)

// Kind returns the kind of the API object.
func (id PolicyID) Kind() string {
	if id.Tier == TierNetworkPolicy {
		return "NetworkPolicy"
	}
	return "ClusterNetworkPolicy"
}

func (o *PolicyObject) newRules() *policyRules {
	return &policyRules{policy: &Policy{ID: o.id, Priority: o.priority}, sets: make(map[SetID]*selection)}
}

func (o *PolicyObject) rules() *policyRules {
	if o.parsed != nil {
		return o.parsed
	}
	out, bad := o.newRules(), findings{}
	var spec networkingv1.NetworkPolicySpec
	if spec.Unmarshal(o.spec) != nil {
		// ParsePolicy has encoded the spec. If unreadable, the policy accepts no traffic.
		return out
	}
	o.parseRules(&spec, out, &bad)
	return out
}

func (o *PolicyObject) selects(p *pod) bool {
	if o.namespaces == nil {
		return p.namespace.name == o.id.Namespace && o.pods.matches(p.labels.values)
	}
	return o.namespaces.matches(p.namespace.labels) && o.pods.matches(p.labels.values)
}

// set appends the ID and stores the selection, unless there are too many sets.
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

// equalMatch ignores the names of the rules.
func equalMatch(a, b *Rule) bool {
	return a.Action == b.Action && a.Any == b.Any && a.AllPorts == b.AllPorts && slices.Equal(a.Pods, b.Pods) &&
		slices.Equal(a.Blocks, b.Blocks) && slices.Equal(a.Ports, b.Ports) && slices.Equal(a.NamedPorts, b.NamedPorts)
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
