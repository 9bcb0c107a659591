package policytest_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// change gives one object to the model.
func change(m *model.Model, c policytest.Change) {
	o, gone := c.New, c.New == nil
	if gone {
		o = c.Old
	}
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	switch o := o.(type) {
	case *corev1.Pod:
		if gone {
			m.DeletePod(name)
		} else {
			m.SetPod(model.ParsePod(o))
		}
	case *corev1.Namespace:
		if gone {
			m.DeleteNamespace(name.Name)
		} else {
			m.SetNamespace(model.ParseNamespace(o))
		}
	case *corev1.Node:
		if o.Name == local {
			m.SetNode(model.ParseNode(o))
		}
	case *networkingv1.NetworkPolicy:
		if gone {
			m.DeletePolicy(name)
		} else {
			m.SetPolicy(model.ParsePolicy(o))
		}
	case *v1alpha2.ClusterNetworkPolicy:
		if gone {
			m.DeleteClusterPolicy(name.Name)
		} else {
			m.SetClusterPolicy(model.ParseClusterPolicy(o))
		}
	default:
		panic(fmt.Sprintf("%T", o))
	}
}

// local is the node of the model.
const local = "node-1"

// state is what all changes of a model lead to.
type state struct {
	pods     map[types.UID]*model.Pod
	policies map[model.PolicyID]*model.Policy
	sets     map[model.SetID]map[model.Member]bool
}

func (s *state) apply(c model.Changes) {
	for _, p := range c.Pods {
		if p.Old != nil {
			delete(s.pods, p.Old.UID)
		}
		if p.New != nil {
			s.pods[p.New.UID] = p.New
		}
	}
	for _, p := range c.Policies {
		if p.Old != nil {
			delete(s.policies, p.Old.ID)
		}
		if p.New != nil {
			s.policies[p.New.ID] = p.New
		}
	}
	for _, change := range c.Sets {
		if change.New == nil {
			delete(s.sets, change.Old.ID)
			continue
		}
		if change.Old == nil {
			s.sets[change.New.ID] = map[model.Member]bool{}
		}
		for _, m := range change.Removed {
			delete(s.sets[change.New.ID], m)
		}
		for _, m := range change.Added {
			s.sets[change.New.ID][m] = true
		}
	}
}

// allows decides a flow for the pod of this node with the address, as the types of the
// model describe. It reports false if there is none.
func (s *state) allows(addr netip.Addr, dir model.Direction, f policytest.Flow) (allowed, ok bool) {
	var pod *model.Pod
	for _, p := range s.pods {
		if slices.Contains(p.Addresses, addr) {
			pod = p
		}
	}
	if pod == nil {
		return false, false
	}
	isolated := false
	passed := [3]bool{}
	for _, id := range pod.Policies[dir] {
		if id.Tier != model.TierAdmin && f.From == f.To {
			return true, true
		}
		if id.Tier == model.TierBaseline && isolated {
			return false, true
		}
		isolated = isolated || id.Tier == model.TierNetworkPolicy
		for i := range s.policies[id].Rules[dir] {
			r := &s.policies[id].Rules[dir][i]
			if passed[id.Tier] || !s.matches(r, dir, f) {
				continue
			}
			if r.Action != model.Pass {
				return r.Action == model.Accept, true
			}
			passed[id.Tier] = true
		}
	}
	return !isolated || f.From == f.To, true
}

func (s *state) matches(r *model.Rule, dir model.Direction, f policytest.Flow) bool {
	far := f.To
	if dir == model.Ingress {
		far = f.From
	}
	peer := r.Any ||
		slices.ContainsFunc(r.Pods, func(id model.SetID) bool { return s.sets[id][model.Member{Addr: far}] }) ||
		slices.ContainsFunc(r.Blocks, func(b model.Range) bool {
			return b.First.BitLen() == far.BitLen() && !far.Less(b.First) && !b.Last.Less(far)
		})
	if !peer || r.AllPorts || f.Protocol == "" {
		return peer && r.AllPorts
	}
	protocol := map[corev1.Protocol]model.Protocol{corev1.ProtocolTCP: model.TCP, corev1.ProtocolUDP: model.UDP, corev1.ProtocolSCTP: model.SCTP}[f.Protocol]
	port := uint16(f.Port)
	return slices.ContainsFunc(r.Ports, func(p model.PortRange) bool {
		return p.Protocol == protocol && (p.First == 0 && p.Last == 0 || p.First <= port && port <= p.Last)
	}) || slices.ContainsFunc(r.NamedPorts, func(id model.SetID) bool { return s.sets[id][model.Member{Addr: f.To, Protocol: protocol, Port: port}] })
}

// nodeAddresses are those of the local node, from which everything reaches its pods.
func nodeAddresses(c *policytest.Cluster) []string {
	var all []string
	for _, a := range c.Nodes[local].Status.Addresses {
		all = append(all, a.Address)
	}
	return all
}

// TestModel changes random clusters and compares the model's outcome with the evaluator, for
// all ends that are pods of the node: a sample of the flows after each change, and all of
// them after each hundredth.
func TestModel(t *testing.T) {
	const seeds, changes, sample = 10, 1000, 40
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			g := policytest.New(policytest.Config{Seed: seed, Nodes: 2, Namespaces: 3, Pods: 10, Policies: 8, ClusterPolicies: int(seed % 5)})
			m := model.New(model.Config{NodeName: local})
			s := &state{map[types.UID]*model.Pod{}, map[model.PolicyID]*model.Policy{}, map[model.SetID]map[model.Member]bool{}}
			for _, c := range g.Cluster.Objects() {
				change(m, c)
			}
			flows, denied := 0, 0
			for i := range changes {
				s.apply(m.Refresh())
				e, ends, own := g.Cluster.Evaluator(), g.Cluster.Ends(), nodeAddresses(g.Cluster)
				var all []policytest.Flow
				if i%100 == 0 {
					all = g.Cluster.Flows()
				}
				for range sample {
					all = append(all, g.Flow(ends))
				}
				for _, f := range all {
					if compareFlow(t, e, own, s, f) {
						denied++
					}
					flows++
				}
				if t.Failed() {
					t.Fatalf("seed %d, change %d", seed, i)
				}
				for _, c := range g.Change() {
					change(m, c)
					if g.Rand().IntN(2) == 0 {
						s.apply(m.Refresh())
					}
				}
			}
			t.Logf("%d changes, %d flows, %d of them denied here: no difference", changes, flows, denied)
		})
	}
}

// compareFlow compares both ends of a flow, and reports whether a pod of the node denies it.
func compareFlow(t *testing.T, e *policytest.Evaluator, own []string, s *state, f policytest.Flow) (denied bool) {
	t.Helper()
	want := e.Evaluate(f)
	for dir, addr := range []netip.Addr{model.Ingress: f.To, model.Egress: f.From} {
		d := want.Ingress
		if model.Direction(dir) == model.Egress {
			d = want.Egress
		} else if slices.Contains(own, f.From.String()) {
			continue
		}
		got, ok := s.allows(addr, model.Direction(dir), f)
		denied = denied || ok && !got
		pod, owned := e.Owner(addr)
		if here := owned && pod.Spec.NodeName == local; ok != here {
			t.Errorf("%s: %s is of a pod of the node: %t, want %t", f, addr, ok, here)
		} else if ok && got != d.Allowed {
			t.Errorf("%s %s: the model allows it: %t, want %s", f, model.Direction(dir), got, d)
		}
	}
	return denied
}
