package model

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// policies has all policies, and those that apply to local pods.
type policies struct {
	*cluster
	reporter *reporter
	byID     map[PolicyID]*policy
	wide     clusterIndex[*policy]      // of pods in several namespaces; the others are in namespace.policies
	active   map[PolicyID]*activePolicy // at the last Refresh
	dirty    map[PolicyID]struct{}
	// Invalid policies that select no pod, and so do not become active.
	unreported map[PolicyID]struct{}
}

type policy struct {
	object *PolicyObject
	parsed *policyRules // nil while inactive
}

type activePolicy struct {
	pods     int     // lists of pods that name the policy
	reported *Policy // nil if inactive at the last Refresh
	sets     []*set  // of reported
}

func newPolicies(c *cluster, r *reporter) *policies {
	return &policies{
		cluster: c, reporter: r, byID: make(map[PolicyID]*policy), active: make(map[PolicyID]*activePolicy),
		dirty: make(map[PolicyID]struct{}), unreported: make(map[PolicyID]struct{}),
	}
}

func (p *policy) rules() *policyRules {
	if p.parsed == nil {
		p.parsed = p.object.rules()
	}
	return p.parsed
}

// SetPolicy stores a NetworkPolicy.
func (ps *policies) SetPolicy(o *PolicyObject) { ps.set(o.id, o) }

// DeletePolicy removes a NetworkPolicy.
func (ps *policies) DeletePolicy(name types.NamespacedName) {
	ps.set(PolicyID{Tier: TierNetworkPolicy, Namespace: name.Namespace, Name: name.Name}, nil)
}

// SetClusterPolicy stores a ClusterNetworkPolicy. Its tier may change.
func (ps *policies) SetClusterPolicy(o *PolicyObject) {
	other := o.id
	other.Tier = TierAdmin + TierBaseline - other.Tier
	ps.set(other, nil)
	ps.set(o.id, o)
}

// DeleteClusterPolicy removes a ClusterNetworkPolicy.
func (ps *policies) DeleteClusterPolicy(name string) {
	for _, t := range []Tier{TierAdmin, TierBaseline} {
		ps.set(PolicyID{Tier: t, Name: name}, nil)
	}
}

// A nil o removes the policy.
func (ps *policies) set(id PolicyID, o *PolicyObject) {
	p := ps.byID[id]
	if p == nil && o == nil || p != nil && o != nil && p.object.equal(o) {
		return
	}
	if p != nil {
		ps.touchSubjects(p.object)
		ps.index(p, false)
	}
	if o == nil {
		delete(ps.byID, id)
	} else {
		if p == nil {
			p = &policy{object: &PolicyObject{}}
			ps.byID[id] = p
		}
		ps.reporter.findings(id.Kind(), types.NamespacedName{Namespace: id.Namespace, Name: id.Name}, p.object.bad, o.bad)
		p.object, p.parsed = o, nil
		ps.index(p, true)
		ps.touchSubjects(o)
		if o.directions == [NumDirections]bool{} && len(o.bad) > 0 {
			ps.unreported[id] = struct{}{}
		}
	}
	if ps.active[id] != nil {
		ps.dirty[id] = struct{}{}
	}
}

func (ps *policies) index(p *policy, add bool) {
	o := p.object
	n := ps.namespace(o.id.Namespace)
	if in, by := ps.wide.of(o.namespaces, o.pods, &n.policies); add {
		in.add(by, p)
	} else {
		in.remove(by, p)
	}
	ps.forgetNamespace(n)
}

func (ps *policies) touchSubjects(o *PolicyObject) {
	for _, p := range ps.locals {
		if o.selects(p) {
			ps.touchPod(p)
		}
	}
}

// of returns the policies of pods in the order of decision.
func (ps *policies) of(pods []*pod) (out []*PolicyObject) {
	for _, p := range pods {
		check := func(q *policy) {
			if q.object.selects(p) {
				out = append(out, q.object)
			}
		}
		p.namespace.policies.each(p.labels.values, check)
		ps.wide.each(p.namespace.labels, p.labels.values, check)
	}
	slices.SortFunc(out, func(a, b *PolicyObject) int {
		return cmp.Or(cmp.Compare(a.id.Tier, b.id.Tier), cmp.Compare(a.priority, b.priority), ComparePolicies(a.id, b.id))
	})
	return slices.Compact(out)
}

// count adds n to the users of the policies of a pod, which may be nil.
func (ps *policies) count(p *Pod, n int) {
	if p == nil {
		return
	}
	for _, id := range slices.Concat(p.Policies[:]...) {
		a := ps.active[id]
		if a == nil {
			a = &activePolicy{}
			ps.active[id] = a
		}
		a.pods += n
		ps.dirty[id] = struct{}{}
	}
}

// refresh returns the changes. The pods are the present ones.
func (ps *policies) refresh(x *sets, pods map[types.UID]*Pod, narrowed narrowings) (out []PolicyChange) {
	var released []*set
	for _, id := range slices.SortedFunc(maps.Keys(ps.dirty), ComparePolicies) {
		a := ps.active[id]
		var now *Policy
		var rules *policyRules
		p := ps.byID[id]
		if a.pods > 0 {
			rules = p.rules()
			now = rules.policy
		} else {
			delete(ps.active, id)
			if p != nil {
				p.parsed = nil
			}
		}
		if a.reported == now {
			continue
		}
		if a.reported == nil || now == nil || !equalPolicy(a.reported, now) {
			out = append(out, PolicyChange{Old: a.reported, New: now})
		}
		if a.reported != nil && now != nil {
			narrowed.policy(a.reported, now, pods)
		}
		released = append(released, a.sets...)
		a.reported, a.sets = now, nil
		if rules != nil {
			for _, sid := range slices.Sorted(maps.Keys(rules.sets)) {
				a.sets = append(a.sets, x.use(sid, rules.sets[sid]))
			}
			ps.report(p.object)
		}
	}
	x.release(released)
	clear(ps.dirty)
	for id := range ps.unreported {
		if p := ps.byID[id]; p != nil {
			ps.report(p.object)
		}
	}
	clear(ps.unreported)
	return out
}

// reporters limits the nodes that report a policy.
const reporters = 3

func (ps *policies) report(o *PolicyObject) {
	message := o.Problem()
	if message == "" {
		return
	}
	var first []*pod
	for _, n := range ps.namespaces {
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
	ps.reporter.notify(Notice{
		Kind: o.id.Kind(), Name: types.NamespacedName{Namespace: o.id.Namespace, Name: o.id.Name}, UID: o.uid, Reason: InvalidPolicy, Message: message,
		Reporter: slices.ContainsFunc(first[:min(len(first), reporters)], func(p *pod) bool { return p.local }),
	})
}
