package cyclonus

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

var changeCount = flag.Int("cyclonus.changes", 200, "how many random changes are made while packets are counted")

const (
	// epoch is the number of changes planned together. Flows with one verdict in all states of an epoch
	// have packets during the changes.
	epoch = 16
	// pause is the time between two changes.
	pause = 25 * time.Millisecond
)

// opening makes random changes of pods, namespaces and policies, and restarts weft and the API server.
// No packet may pass that every state denies, or be lost if every state allows it. Between two epochs
// all packets are as the evaluator says.
//
// The API's pods and their addresses come and go; the network has a namespace for each address.
//
// Policy behaviour: 43-46, 51.
func opening(t *testing.T, w *world) {
	rng := rand.New(rand.NewPCG(*seed, 1))
	g := policytest.New(policytest.Config{Seed: *seed, Nodes: 3, Namespaces: 3, Pods: 12, Policies: 8, ClusterPolicies: 3})
	w.api.replace(g.Cluster)
	w.converge(t, g.Cluster)
	allowed, denied, packets := 0, 0, 0
	for made := 0; made < *changeCount; made += epoch {
		p := newPlan(g, epoch, streamable(w.places))
		s := w.startStream(t, p.want)
		for i, changes := range p.changes {
			w.api.apply(changes)
			switch {
			case i%5 == 2:
				d := w.daemons[rng.IntN(len(w.daemons))]
				must(t, cmp.Or(d.stop(rng.IntN(2) == 0), d.start()))
			case i%5 == 4 && made/epoch%3 == 0:
				// weft is slow to connect again, so not in every epoch.
				must(t, w.api.disturb(rng))
			}
			<-time.After(pause)
		}
		if w.api.away {
			must(t, w.api.disturb(rng))
		}
		must(t, w.api.followed(t.Context(), len(w.daemons)))
		w.converge(t, g.Cluster)
		sent, wrong := s.stop()
		for _, line := range wrong {
			t.Errorf("seed %d, changes %d to %d: %s", *seed, made, made+epoch, line)
		}
		packets += sent
		for _, want := range p.want {
			if want {
				allowed++
			} else {
				denied++
			}
		}
	}
	t.Logf("%d changes, %d packets along %d flows that must pass and %d that must not", *changeCount, packets, allowed, denied)
	if denied == 0 || allowed == 0 {
		t.Error("no packets that must not pass, or none that must pass")
	}
}

// converge waits until all packets are as the evaluator says.
func (w *world) converge(t *testing.T, c *policytest.Cluster) {
	t.Helper()
	want, e, all := map[flow]bool{}, c.Evaluator(), flowsBetween(w.places)
	others := others(all)
	for _, f := range all {
		if !others.second(e, f.From) && !others.second(e, f.To) {
			want[f] = e.Evaluate(f.Flow).Allowed
		}
	}
	w.check(t, "evaluator", want, c)
}

// flowsBetween are the flows between different pods, to all ports and without ports.
func flowsBetween(places map[string]place) []flow {
	var all []flow
	for _, from := range podKeys() {
		for _, to := range podKeys() {
			if from == to {
				continue
			}
			for family := range 2 {
				f := policytest.Flow{From: places[from].addresses[family], To: places[to].addresses[family]}
				all = append(all, flow{from, to, f})
				for _, f.Protocol = range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
					for _, port := range ports {
						f.Port = int32(port)
						all = append(all, flow{from, to, f})
					}
				}
			}
		}
	}
	return all
}

func streamable(places map[string]place) []flow {
	var all []flow
	for _, f := range flowsBetween(places) {
		if f.Protocol == corev1.ProtocolUDP {
			all = append(all, f)
		}
	}
	return all
}
