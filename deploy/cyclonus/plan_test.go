package cyclonus

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// plan is the changes of an epoch, and the flows with one verdict in all of its states.
type plan struct {
	// A change may be of several objects, at once.
	changes         [][]policytest.Change
	allowed, denied []flow
	// the state before the changes
	first *policytest.Cluster
}

// A node learns of each kind of object in order, but not of two kinds, and nodes may lag behind one
// another. So newPlan requires that both ends allow a flow, or the same end denies it, in all
// combinations of the states of each kind.
func newPlan(g *policytest.Generator, n int, candidates []flow) *plan {
	s := newStates(g.Cluster)
	p := &plan{first: s.last()}
	for range n {
		changes := g.Change()
		p.changes = append(p.changes, changes)
		for _, c := range changes {
			s.add(c)
		}
	}
	p.allowed, p.denied = s.constant(candidates)
	return p
}

// owners are the last pods with the addresses.
type owners map[netip.Addr]types.UID

// note counts addresses that move from one pod to another.
func (o owners) note(c policytest.Change) (reused int) {
	pod, ok := c.New.(*corev1.Pod)
	if !ok {
		return 0
	}
	for _, a := range policytest.Addresses(pod) {
		if before := o[a]; before != "" && before != pod.UID {
			reused++
		}
		o[a] = pod.UID
	}
	return reused
}

// interfaces maps each address to the other address of its interface.
type interfaces map[netip.Addr]netip.Addr

func others(all []flow) interfaces {
	of, out := map[string]netip.Addr{}, interfaces{}
	for _, f := range all {
		for key, a := range map[string]netip.Addr{f.from: f.From, f.to: f.To} {
			switch b, ok := of[key]; {
			case !ok:
				of[key] = a
			case b != a:
				out[a], out[b] = b, a
			}
		}
	}
	return out
}

// second reports an address without a pod, if a pod has the interface's other address: the pod's
// policies hold for it, unknown to the evaluator.
func (i interfaces) second(e *policytest.Evaluator, a netip.Addr) bool {
	_, owned := e.Owner(a)
	_, other := e.Owner(i[a])
	return !owned && other
}

// states has the states of each kind of object, in order. They share unchanged objects.
type states struct {
	nodes           map[string]*corev1.Node
	pods            []map[types.NamespacedName]*corev1.Pod
	namespaces      []map[string]*corev1.Namespace
	policies        []map[types.NamespacedName]*networkingv1.NetworkPolicy
	clusterPolicies []map[string]*v1alpha2.ClusterNetworkPolicy
	// present is the last state of the pods, even if it is not in pods.
	present map[types.NamespacedName]*corev1.Pod
	// stricter has addresses for which weft may accept less than the evaluator: two pods have the
	// address, and weft accepts only traffic that both accept; or the pod's namespace is unsure.
	stricter map[netip.Addr]bool
	// unsure are namespaces that come or go. If weft knows a pod without its namespace, it applies
	// every policy that may select it.
	unsure map[string]bool
}

// g replaces objects of a cluster, so newStates copies the maps.
func newStates(c *policytest.Cluster) *states {
	pods := maps.Clone(c.Pods)
	return &states{
		c.Nodes,
		[]map[types.NamespacedName]*corev1.Pod{pods},
		[]map[string]*corev1.Namespace{maps.Clone(c.Namespaces)},
		[]map[types.NamespacedName]*networkingv1.NetworkPolicy{maps.Clone(c.Policies)},
		[]map[string]*v1alpha2.ClusterNetworkPolicy{maps.Clone(c.ClusterPolicies)},
		pods,
		map[netip.Addr]bool{},
		map[string]bool{},
	}
}

func (s *states) add(c policytest.Change) {
	switch o := cmp.Or(c.New, c.Old).(type) {
	case *corev1.Pod:
		s.setPod(keyOf(o), c)
	case *corev1.Namespace:
		if c.Old == nil || c.New == nil {
			s.unsure[o.Name] = true
		}
		s.namespaces = append(s.namespaces, with(last(s.namespaces), o.Name, c))
	case *networkingv1.NetworkPolicy:
		s.policies = append(s.policies, with(last(s.policies), keyOf(o), c))
	case *v1alpha2.ClusterNetworkPolicy:
		s.clusterPolicies = append(s.clusterPolicies, with(last(s.clusterPolicies), o.Name, c))
	default:
		panic(fmt.Sprintf("cyclonus: change of a %T", o))
	}
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (s *states) last() *policytest.Cluster {
	return &policytest.Cluster{Nodes: s.nodes, Pods: s.present, Namespaces: last(s.namespaces), Policies: last(s.policies), ClusterPolicies: last(s.clusterPolicies)}
}

func last[S any](all []S) S { return all[len(all)-1] }

func with[K comparable, O metav1.Object](before map[K]O, key K, c policytest.Change) map[K]O {
	m := maps.Clone(before)
	if c.New != nil {
		m[key] = c.New.(O)
	} else {
		delete(m, key)
	}
	return m
}

// setPod omits states in which two pods have one address, because the evaluator knows one pod for an
// address.
func (s *states) setPod(key types.NamespacedName, c policytest.Change) {
	s.present = with(s.present, key, c)
	owned, twice := map[netip.Addr]bool{}, false
	for _, pod := range s.present {
		for _, a := range policytest.Addresses(pod) {
			if owned[a] {
				s.stricter[a], twice = true, true
			}
			owned[a] = true
		}
	}
	if !twice {
		s.pods = append(s.pods, s.present)
	}
}

// constant returns the flows with one verdict in all combinations of states.
func (s *states) constant(candidates []flow) (allowed, denied []flow) {
	// verdicts are the decisions of a flow's ends: egress, then ingress.
	type verdicts struct{ allowed, denied [2]bool }
	type candidate struct {
		flow
		verdicts
	}
	all := make([]candidate, len(candidates))
	for i, f := range candidates {
		all[i].flow = f
	}
	mixed := policytest.Cluster{Nodes: s.nodes}
	for _, mixed.Pods = range s.pods {
		for _, mixed.Namespaces = range s.namespaces {
			for _, mixed.Policies = range s.policies {
				for _, mixed.ClusterPolicies = range s.clusterPolicies {
					e := mixed.Evaluator()
					for i := range all {
						c := &all[i]
						v := e.Evaluate(c.Flow)
						for end, d := range []policytest.Decision{v.Egress, v.Ingress} {
							c.allowed[end], c.denied[end] = c.allowed[end] || d.Allowed, c.denied[end] || !d.Allowed
						}
					}
					all = slices.DeleteFunc(all, func(c candidate) bool {
						return (c.denied[0] || c.denied[1]) && c.allowed[0] && c.allowed[1]
					})
				}
			}
		}
	}
	for _, pods := range s.pods {
		for _, pod := range pods {
			for _, a := range policytest.Addresses(pod) {
				s.stricter[a] = s.stricter[a] || s.unsure[pod.Namespace]
			}
		}
	}
	others := others(candidates)
	for _, pods := range s.pods {
		e := (&policytest.Cluster{Pods: pods}).Evaluator()
		for a := range others {
			s.stricter[a] = s.stricter[a] || others.second(e, a)
		}
	}
	for _, c := range all {
		switch {
		case c.denied[0] || c.denied[1]:
			denied = append(denied, c.flow)
		case !s.stricter[c.From] && !s.stricter[c.To]:
			allowed = append(allowed, c.flow)
		}
	}
	return allowed, denied
}

// history is the evaluator's verdicts on a flow in each state with a difference.
func (p *plan) history(f flow) string {
	s := newStates(p.first)
	before := s.last().Evaluate(f.Flow).String()
	out := fmt.Sprintf("%s > %s %s: %s", f.from, f.to, f.Flow, before)
	for i, changes := range p.changes {
		for _, c := range changes {
			s.add(c)
			o, verb := c.New, "new"
			switch {
			case c.New == nil:
				o, verb = c.Old, "deleted"
			case c.Old != nil:
				verb = "changed"
			}
			now := s.last().Evaluate(f.Flow).String()
			if now != before {
				out += fmt.Sprintf("\n  %d: %T %s/%s %s: %s", i, o, o.GetNamespace(), o.GetName(), verb, now)
			}
			before = now
		}
	}
	return out
}

// sample keeps one random flow among flows that differ only in their port.
func (p *plan) sample(rng *rand.Rand) {
	type kind struct {
		from, to netip.Addr
		protocol corev1.Protocol
	}
	denied := map[flow]bool{}
	for _, f := range p.denied {
		denied[f] = true
	}
	all := slices.Concat(p.allowed, p.denied)
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	p.allowed, p.denied = nil, nil
	seen := map[kind]bool{}
	for _, f := range all {
		switch k := (kind{f.From, f.To, f.Protocol}); {
		case seen[k]:
			continue
		case denied[f]:
			seen[k], p.denied = true, append(p.denied, f)
		default:
			seen[k], p.allowed = true, append(p.allowed, f)
		}
	}
}
