package model_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/frontends/policy/judge"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/testing/modeltest"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// flow is the first packet of a connection. The protocol is 0 for one without ports.
type flow struct {
	from, to netip.Addr
	protocol model.Protocol
	port     uint16
}

// judge decides a flow in one direction. The pod is nil for an address that belongs to no pod of
// the node, for a pod and itself, and for the node and its pod.
func (o *outcome) judge(d model.Direction, f flow) (allowed bool, pod *model.Pod) {
	j := judge.Judge{State: o, Local: func(a netip.Addr) bool { return d == model.Ingress && slices.Contains(o.Node.Addresses, a) }}
	decision := j.Flow(judge.Flow{Source: f.from, Destination: f.to, Protocol: f.protocol, Port: f.port}).Ends[d]
	if f.from == f.to || decision.Reason == judge.NoPod || decision.Reason == judge.FromNode {
		return true, nil
	}
	return decision.Allowed, o.Pod([...]netip.Addr{model.Ingress: f.to, model.Egress: f.from}[d])
}

// Pod implements judge.State.
func (o *outcome) Pod(a netip.Addr) *model.Pod {
	for _, p := range o.Pods {
		if slices.Contains(p.Addresses, a) {
			return p
		}
	}
	return nil
}

// Rules implements judge.State.
func (o *outcome) Rules(id model.PolicyID, d model.Direction) ([]model.Rule, bool) {
	return o.Policies[id].Rules[d], true
}

// Contains implements judge.State.
func (o *outcome) Contains(id model.SetID, m model.Member) (member, known bool) {
	members, known := o.Members[id]
	return members[m], known
}

var protocols = map[corev1.Protocol]model.Protocol{"": 0, corev1.ProtocolTCP: model.TCP, corev1.ProtocolUDP: model.UDP, corev1.ProtocolSCTP: model.SCTP}

// TestVerdicts compares the model's verdicts with an evaluator written from the documentation of
// the API: a sample of the flows after each of many random changes, and all flows after each
// hundredth.
//
// Policy behaviour: 1-9, 12-20, 22-26, 28, 29, 34, 40, 58-62, 64.
func TestVerdicts(t *testing.T) {
	const seeds, changes, sample = 10, 1000, 40
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			g := policytest.New(policytest.Config{Seed: seed, Nodes: 2, Namespaces: 3, Pods: 10, Policies: 8, ClusterPolicies: int(seed % 5)})
			m, o := model.New(model.Config{NodeName: node}), newOutcome()
			for _, c := range g.Cluster.Objects() {
				modeltest.Apply(m, c)
			}
			counts := make(map[bool]int)
			for i := range changes {
				o.apply(t, m.Refresh())
				e, ends := g.Cluster.Evaluator(), g.Cluster.Ends()
				var flows []policytest.Flow
				if i%100 == 0 {
					flows = g.Cluster.Flows()
				}
				for range sample {
					flows = append(flows, g.Flow(ends))
				}
				for _, f := range flows {
					o.compare(t, e, f, counts)
				}
				if t.Failed() {
					t.Fatalf("change %d", i)
				}
				for _, c := range g.Change() {
					modeltest.Apply(m, c)
					if g.Rand().IntN(2) == 0 {
						o.apply(t, m.Refresh())
					}
				}
			}
			if counts[true] < 100 || counts[false] < 100 {
				t.Errorf("too few verdicts: %v", counts)
			}
		})
	}
}

// compare compares both directions of a flow with the evaluator, and counts the verdicts.
func (o *outcome) compare(t *testing.T, e *policytest.Evaluator, f policytest.Flow, counts map[bool]int) {
	t.Helper()
	v := e.Evaluate(f)
	mine := flow{f.From, f.To, protocols[f.Protocol], uint16(f.Port)} //nolint:gosec // a port
	for d, want := range map[model.Direction]policytest.Decision{model.Ingress: v.Ingress, model.Egress: v.Egress} {
		got, pod := o.judge(d, mine)
		self := f.To
		if d == model.Egress {
			self = f.From
		}
		owner, ok := e.Owner(self)
		local := ok && owner.Spec.NodeName == node
		exempt := f.From == f.To || d == model.Ingress && slices.Contains(o.Node.Addresses, f.From)
		if (pod != nil) != (local && !exempt) {
			t.Errorf("%s %s: decided by pod %v, and the address is of a pod of the node: %t", f, d, pod, local)
		}
		if pod == nil {
			continue
		}
		counts[got]++
		if got != want.Allowed {
			t.Errorf("%s %s of %s: allowed is %v, want %s", f, d, pod.Name, got, want)
		}
	}
}

// clone returns a copy that later changes do not affect.
func (o *outcome) clone() *outcome {
	out := &outcome{Pods: maps.Clone(o.Pods), Policies: maps.Clone(o.Policies), Sets: maps.Clone(o.Sets), Members: maps.Clone(o.Members), Node: o.Node}
	for id, members := range out.Members {
		out.Members[id] = maps.Clone(members)
	}
	return out
}

// TestNarrowedIsEnough makes random changes: each flow that was allowed and is not any more
// has an end among the addresses that are reported.
//
// Policy behaviour: 47.
func TestNarrowedIsEnough(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			g := policytest.New(policytest.Config{Seed: 200 + seed, Nodes: 2, Namespaces: 3, Pods: 16, Policies: 10, ClusterPolicies: 3})
			m, o := model.New(model.Config{NodeName: node}), newOutcome()
			for _, c := range g.Cluster.Objects() {
				modeltest.Apply(m, c)
			}
			o.apply(t, m.Refresh())
			cut, quiet := 0, 0
			for range 80 {
				flows := g.Cluster.Flows()
				for range 1 + g.Rand().IntN(2) {
					for _, c := range g.Change() {
						modeltest.Apply(m, disturb(g, c))
					}
				}
				before := o.clone()
				changes := m.Refresh()
				o.apply(t, changes)
				if !changes.Empty() && len(changes.Narrowed) == 0 {
					quiet++
				}
				for i, f := range append(flows, g.Cluster.Flows()...) {
					if (i+int(seed))%3 > 0 { //nolint:gosec // small
						continue
					}
					mine := flow{f.From, f.To, protocols[f.Protocol], uint16(f.Port)} //nolint:gosec // a port
					for d := range model.NumDirections {
						was, _ := before.judge(d, mine)
						is, pod := o.judge(d, mine)
						if !was || is {
							continue
						}
						cut++
						if !slices.Contains(changes.Narrowed, f.From) && !slices.Contains(changes.Narrowed, f.To) {
							t.Fatalf("%s %s of %s is not allowed any more, and narrowed are %v", f, d, pod.Name, changes.Narrowed)
						}
					}
				}
			}
			if cut == 0 || quiet == 0 {
				t.Errorf("%d flows were cut, %d changes narrowed nothing", cut, quiet)
			}
		})
	}
}
