package cyclonus

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mattfenwick/cyclonus/pkg/connectivity/probe"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"github.com/weft-proxy/weft/frontends/policy/policytest"
)

var changeCount = flag.Int("cyclonus.changes", 200, "how many random changes are made while packets are counted")

// The parts of opening.
const (
	// epoch is how many changes are planned together. The flows that have one verdict in all
	// states of an epoch have packets each millisecond while the changes happen.
	epoch = 25
	// pause is the time between two changes.
	pause = 25 * time.Millisecond
	// streamedFlows is how many flows of each verdict have packets.
	streamedFlows = 10
)

// opening makes random changes of policies and labels, stops and kills weft meanwhile, and
// shows that no packet passes that every state denies, and none is lost that every state
// allows. Between two epochs all packets are as the evaluator says.
func opening(t *testing.T, w *world) {
	rng := rand.New(rand.NewPCG(*seed, 1))
	g := policytest.New(policytest.Config{Seed: *seed, Nodes: 3, Policies: 8, ClusterPolicies: 3, KeepPods: true})
	g.Cluster = w.initial()
	var total figures
	restarts, start := 0, time.Now()
	for made := 0; made < *changeCount; made += epoch {
		w.converge(t, g.Cluster)
		p := plan(g, w.places)
		allowed, denied := p.constant(rng)
		s := w.newStream(allowed, denied)
		for i, c := range p.states {
			if err := w.api.set(c); err != nil {
				t.Fatal(err)
			}
			if i%5 == 2 {
				d := w.daemons[rng.IntN(len(w.daemons))]
				if err := d.stop(rng.IntN(2) == 0); err != nil {
					t.Fatal(err)
				}
				if err := d.start(); err != nil {
					t.Fatal(err)
				}
				restarts++
			}
			<-time.After(pause)
		}
		w.converge(t, g.Cluster)
		f, wrong := s.stop()
		total.add(f)
		for _, line := range wrong {
			t.Errorf("seed %d, changes %d to %d: %s", *seed, made, made+epoch, line)
		}
	}
	t.Logf("%d changes, %d stops and kills, %s; of %d packets that must not pass %d passed; of %d that must pass %d were lost",
		*changeCount, restarts, time.Since(start).Round(time.Second), total.denied, total.passed, total.allowed, total.lost)
	if total.denied+total.allowed == 0 {
		t.Error("no packets")
	}
}

// initial has all pods of the cases, a policy that isolates w/a in both directions, and no
// policy in the namespace y-2.
func (w *world) initial() *policytest.Cluster {
	s := &step{resources: &probe.Resources{Namespaces: map[string]map[string]string{}}}
	protocols := []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
	for key := range w.places {
		var ns, name string
		for i := range key {
			if key[i] == '/' {
				ns, name = key[:i], key[i+1:]
			}
		}
		s.resources.Namespaces[ns] = map[string]string{"team": "a", corev1.LabelMetadataName: ns}
		pod := probe.NewDefaultPod(ns, name, []int{80, 81}, protocols, false, "")
		pod.Labels = map[string]string{"app": "a"}
		s.resources.Pods = append(s.resources.Pods, pod)
	}
	s.policies = []*networkingv1.NetworkPolicy{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "w", Name: "isolate"},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}},
	}}
	return s.cluster(w.places)
}

// converge waits until all packets are as the evaluator says of the cluster.
func (w *world) converge(t *testing.T, c *policytest.Cluster) {
	t.Helper()
	if err := w.api.set(c); err != nil {
		t.Fatal(err)
	}
	want, e := map[flow]bool{}, c.Evaluator()
	for _, f := range flowsBetween(w.places) {
		want[f] = e.Evaluate(f.Flow).Allowed
	}
	d, _, err := w.agree(t.Context(), want)
	if err := cmp.Or(err, w.err()); err != nil {
		t.Fatal(err)
	}
	if len(d) == 0 {
		for _, line := range w.connections.differ(t.Context(), want) {
			t.Error(line)
		}
		return
	}
	for i, one := range d[:min(len(d), 6)] {
		t.Errorf("%d of %d: %s: %s", i+1, len(d), one, e.Evaluate(one.Flow))
	}
	t.Fatal(w.rulesets(t.Context()))
}

// flowsBetween are the flows between all different pods, to all ports and without ports.
func flowsBetween(places map[string]place) []flow {
	var all []flow
	for _, from := range podKeys() {
		for _, to := range podKeys() {
			for family := range 2 {
				if from != to {
					all = append(all, flow{from, to, policytest.Flow{From: places[from].addresses[family], To: places[to].addresses[family]}})
				}
				for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
					for _, port := range ports {
						if from != to {
							all = append(all, flow{from, to, policytest.Flow{
								From: places[from].addresses[family], To: places[to].addresses[family], Protocol: protocol, Port: int32(port),
							}})
						}
					}
				}
			}
		}
	}
	return all
}

// planned are the states of an epoch, and the flows that have one verdict in all of them.
type planned struct {
	states          []*policytest.Cluster
	allowed, denied []flow
}

// plan makes the changes of an epoch. A node learns of each kind of object in order, but not
// of two kinds, and nodes may lag behind one another: a flow has to be allowed by both ends,
// or denied by the same end, for all pods of the epoch with all its namespaces and policies.
func plan(g *policytest.Generator, places map[string]place) planned {
	var p planned
	state := func() *policytest.Cluster {
		c := *g.Cluster
		c.Pods, c.Namespaces = maps.Clone(c.Pods), maps.Clone(c.Namespaces)
		c.Policies, c.ClusterPolicies = maps.Clone(c.Policies), maps.Clone(c.ClusterPolicies)
		return &c
	}
	first := state()
	pods, namespaces, policies := []*policytest.Cluster{first}, []*policytest.Cluster{first}, []*policytest.Cluster{first}
	for range epoch {
		changed := g.Change()[0]
		c := state()
		p.states = append(p.states, c)
		switch o := cmp.Or(changed.New, changed.Old).(type) {
		case *corev1.Pod:
			pods = append(pods, c)
		case *corev1.Namespace:
			namespaces = append(namespaces, c)
		case *networkingv1.NetworkPolicy, *v1alpha2.ClusterNetworkPolicy:
			policies = append(policies, c)
		default:
			panic(fmt.Sprintf("cyclonus: change of a %T", o))
		}
	}
	always := map[flow][2]map[bool]bool{}
	flows := slices.DeleteFunc(flowsBetween(places), func(f flow) bool { return f.Protocol == corev1.ProtocolTCP })
	for _, f := range flows {
		always[f] = [2]map[bool]bool{{}, {}}
	}
	for _, a := range pods {
		for _, b := range namespaces {
			for _, c := range policies {
				mixed := *g.Cluster
				mixed.Pods, mixed.Namespaces = a.Pods, b.Namespaces
				mixed.Policies, mixed.ClusterPolicies = c.Policies, c.ClusterPolicies
				e := mixed.Evaluator()
				for _, f := range flows {
					v := e.Evaluate(f.Flow)
					always[f][0][v.Egress.Allowed], always[f][1][v.Ingress.Allowed] = true, true
				}
			}
		}
	}
	for _, f := range flows {
		switch egress, ingress := always[f][0], always[f][1]; {
		case !egress[false] && !ingress[false]:
			p.allowed = append(p.allowed, f)
		case !egress[true] || !ingress[true]:
			p.denied = append(p.denied, f)
		}
	}
	return p
}

// constant returns some flows of each verdict.
func (p *planned) constant(rng *rand.Rand) (allowed, denied []flow) {
	some := func(from []flow) []flow {
		rng.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
		return from[:min(len(from), streamedFlows)]
	}
	return some(p.allowed), some(p.denied)
}
