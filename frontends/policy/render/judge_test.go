package render

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/frontends/policy/judge"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/testing/modeltest"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// thisNode is the node that the random clusters are rendered for.
const thisNode = "node-1"

// world is a random cluster, the model of it and what is rendered.
type world struct {
	*fixture
	*policytest.Generator
	model *model.Model
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		fixture:   newFixture(t, func(c *Config) { c.Start, c.DropLog = Start(seed%2), int(seed%3) }),
		Generator: policytest.New(policytest.Config{Seed: seed, Nodes: 2, Namespaces: 3, Pods: 12, Policies: 8, ClusterPolicies: int(seed % 5)}),
		model:     model.New(model.Config{NodeName: thisNode}),
	}
	for _, c := range w.Cluster.Objects() {
		modeltest.Apply(w.model, c)
	}
	return w
}

// publish renders what changed.
func (w *world) publish() {
	w.step(w.model.Refresh())
	for w.r.Pending() {
		w.step(model.Changes{})
	}
	if p := w.r.Cleanup(); p != nil {
		w.rules.patch(w.t, p)
	}
	w.compare()
}

// node returns the addresses of this node.
func (w *world) node() (out []netip.Addr) {
	for _, a := range w.Cluster.Nodes[thisNode].Status.Addresses {
		if addr, err := netip.ParseAddr(a.Address); err == nil {
			out = append(out, addr)
		}
	}
	return out
}

// ends returns the decisions of an evaluator on both ends, true for an end that is not a
// pod of this node.
func (w *world) ends(e *policytest.Evaluator, f policytest.Flow) (out [model.NumDirections]bool) {
	v := e.Evaluate(f)
	for d, end := range [model.NumDirections]struct {
		addr     netip.Addr
		decision policytest.Decision
	}{model.Ingress: {f.To, v.Ingress}, model.Egress: {f.From, v.Egress}} {
		pod, ok := e.Owner(end.addr)
		out[d] = !ok || pod.Spec.NodeName != thisNode || end.decision.Allowed
	}
	return out
}

// TestJudge compares three verdicts on the flows of random clusters after each of many
// changes: of the judge, of the rendered rules, and of an evaluator that was written from
// the documentation of the API.
func TestJudge(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			allowed, denied := 0, 0
			for range 40 {
				for range 1 + w.Rand().IntN(3) {
					for _, c := range w.Change() {
						modeltest.Apply(w.model, c)
					}
				}
				w.publish()
				e, node := w.Cluster.Evaluator(), w.node()
				for _, f := range w.Cluster.Flows() {
					if w.Rand().IntN(3) > 0 {
						continue
					}
					if w.compareFlow(e, node, f) {
						allowed++
					} else {
						denied++
					}
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("%d flows allowed, %d denied", allowed, denied)
			if allowed < 1000 || denied < 1000 {
				t.Error("too few")
			}
		})
	}
}

// compareFlow compares the verdicts on a flow, and returns that of the judge.
func (w *world) compareFlow(e *policytest.Evaluator, node []netip.Addr, of policytest.Flow) (allowed bool) {
	w.t.Helper()
	f := flowOf(of)
	got := w.r.Judge(f, func(netip.Addr) bool { return false })
	fromNode, toNode := slices.Contains(node, f.Source), slices.Contains(node, f.Destination)
	if rules := fromNode || w.rules.traverse(f, toNode); rules != got.Allowed {
		w.t.Errorf("%s: the judge says %s, the rules allow it: %v", f, got, rules)
	}
	if w.r.cfg.Start == StartDeny {
		// The evaluator has no pods that are not known.
		for _, d := range got.Ends {
			if d.Reason == judge.Unknown {
				return got.Allowed
			}
		}
	}
	want := w.ends(e, of)
	if fromNode {
		want = [model.NumDirections]bool{true, true}
	}
	for d, end := range got.Ends {
		if end.Allowed != want[d] {
			w.t.Errorf("%s: the judge says %s, the evaluator %s", f, got, e.Evaluate(of))
		}
	}
	return got.Allowed
}

// TestJudgeWhatModelsDoNotHave compares the judge with the rules on states that the random
// clusters do not have: policies that are left out or have very many rules, and sets that
// are not known.
func TestJudgeWhatModelsDoNotHave(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			f := newFixture(t, func(c *Config) { c.Start = Start(seed % 2) })
			c := &changer{fixture: f, Rand: rand.New(rand.NewPCG(seed, 3))}
			denied := 0
			for range 60 {
				for range 1 + c.IntN(4) {
					c.change()
				}
				if c.IntN(30) == 0 {
					c.policy("a/p", c.manyRules("a/p"), c.manyRules("a/p"))
				}
				c.publish()
				f.finish()
				for range 100 {
					flow := judge.Flow{
						Source:      netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", c.IntN(2), c.IntN(8))),
						Destination: netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", c.IntN(2), c.IntN(8))),
						Protocol:    pick(c, []model.Protocol{1, model.TCP, model.UDP, model.SCTP}),
						Port:        pick(c, []uint16{1, 7, 9, 53, 79, 80, 81, 95, 65535}),
					}
					node, six := netip.MustParseAddr("10.0.0.99"), c.IntN(3) == 0
					if six {
						node = netip.MustParseAddr("fd00::99")
						flow.Source, flow.Destination = netip.MustParseAddr(fmt.Sprintf("fd00::%d", c.IntN(8))), netip.MustParseAddr(fmt.Sprintf("fd00::%d", c.IntN(8)))
					}
					toNode := c.IntN(5) == 0
					if toNode {
						flow.Destination = node
					}
					v := f.r.Judge(flow, func(a netip.Addr) bool { return a == node })
					if f.rules.traverse(flow, toNode) != v.Allowed {
						t.Fatalf("%s: the judge says %s, the rules %v", flow, v, !v.Allowed)
					}
					if !v.Allowed {
						denied++
					}
				}
			}
			if denied < 100 {
				t.Errorf("%d flows were denied", denied)
			}
		})
	}
}

// manyRules are more rules than are rendered one by one, most of them with ports of their
// own.
func (c *changer) manyRules(policy string) []model.Rule {
	out := c.someRules(policy)
	for range manyRules + 20 {
		first := 1 + c.IntN(200)
		out = append(out, model.Rule{
			Pods: []model.SetID{model.SetID(pick(c, someSets[:3]))}, Blocks: blocks(some(c, []string{"10.0.1.0/29", "fd00::4/126"})...),
			Ports: ports(fmt.Sprintf("%s %d-%d", pick(c, []string{"tcp", "udp"}), first, first+c.IntN(2))),
		})
	}
	return out
}

// TestJudgeNames checks what a verdict says in words.
func TestJudgeNames(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.Start = StartDeny })
	f.cluster.node = &model.Node{PodCIDRs: prefixes("10.0.0.0/24")}
	f.policy("shop/db", []model.Rule{{Any: true, Ports: ports("tcp 81")}}, nil)
	f.pod("shop/web", "10.0.0.1", []string{"admin/gone"}, []string{"baseline/b"})
	f.policy("baseline/b", nil, nil)
	f.pod("shop/db", "10.0.0.2", []string{"shop/db"}, nil)
	f.finish()
	node := func(a netip.Addr) bool { return a == netip.MustParseAddr("10.0.9.1") }
	for flow, want := range map[string]string{
		"10.0.0.1 10.0.0.2 80": "denied: egress allowed: not isolated; ingress denied: isolated, and no policy accepts",
		"10.0.0.1 10.0.0.2 81": "allowed: egress allowed: not isolated; ingress allowed: by a rule of NetworkPolicy shop/db ingress[0]",
		"10.0.0.2 10.0.0.2 1":  "allowed: egress allowed: a pod reaches itself; ingress allowed: a pod reaches itself",
		"10.0.0.2 10.0.0.1 1":  "denied: egress allowed: not isolated; ingress denied: left out is ClusterNetworkPolicy /gone ",
		"10.0.9.1 10.0.0.1 1":  "allowed: egress allowed: the flow comes from this node; ingress allowed: the flow comes from this node",
		"10.0.0.77 10.0.0.1 1": "denied: egress denied: no pod is known at this address; ingress allowed: not a pod of this node",
		"fe80::1 fe80::2 1":    "allowed: egress allowed: not a pod of this node; ingress allowed: not a pod of this node",
	} {
		parts := strings.Fields(flow)
		in := judge.Flow{Source: netip.MustParseAddr(parts[0]), Destination: netip.MustParseAddr(parts[1]), Protocol: model.TCP}
		_, _ = fmt.Sscan(parts[2], &in.Port)
		if got := f.r.Judge(in, node); got.String() != want {
			t.Errorf("%s:\n got %s\nwant %s", in, got, want)
		}
	}
	four, err := New(Config{Families: [2]bool{true, false}})
	must(t, err)
	if v := four.Judge(judge.Flow{Source: netip.IPv6Loopback(), Destination: netip.IPv6Loopback()}, node); !v.Allowed {
		t.Errorf("without IPv6: %s", v)
	}
}
