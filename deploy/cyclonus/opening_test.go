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
	api, err := w.follow(g.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Stop()
	s, err := w.newStreamer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	var total figures
	restarts, reused, epochs, start := 0, 0, 0, time.Now()
	had := owners{}
	for _, c := range g.Cluster.Objects() {
		had.note(c)
	}
	w.converge(t, g.Cluster)
	t.Run("detector", func(t *testing.T) { detector(t, w, s, g) })
	for made := 0; made < *changeCount; made += epoch {
		p := newPlan(g, epoch, streamable(w.places))
		p.sample(rng)
		stream, err := s.start(t.Context(), p.allowed, p.denied)
		if err != nil {
			t.Fatalf("seed %d, changes %d to %d: %v", *seed, made, made+epoch, err)
		}
		for i, changes := range p.changes {
			api.apply(changes)
			for _, c := range changes {
				reused += had.note(c)
			}
			switch i % 5 {
			case 2:
				w.restart(t, rng)
				restarts++
			case 4:
				// weft is slow to connect again, so not in every epoch.
				if epochs%3 != 0 {
					break
				}
				if err := api.disturb(rng); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(pause)
		}
		if api.away {
			if err := api.disturb(rng); err != nil {
				t.Fatal(err)
			}
		}
		if err := api.followed(t.Context(), len(w.daemons)); err != nil {
			t.Fatal(err)
		}
		w.converge(t, g.Cluster)
		f, wrong, flows, err := stream.stop(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		total.add(f)
		epochs++
		for _, line := range wrong {
			t.Errorf("seed %d, changes %d to %d: %s", *seed, made, made+epoch, line)
		}
		for _, f := range flows[:min(len(flows), 3)] {
			t.Log(p.history(f))
		}
	}
	t.Logf("%d changes, %d times an address came to another pod, %d stops and kills of weft and %d of the API server, %s",
		*changeCount, reused, restarts, api.outages, time.Since(start).Round(time.Second))
	t.Logf("of %d flows by TCP and UDP between %d pods, %d were always denied and %d always allowed, on average of %d epochs; %s",
		len(streamable(w.places))/len(ports), len(w.places), total.deniedFlows/epochs, total.allowedFlows/epochs, epochs, &total)
	if total.denied == 0 || total.allowed == 0 {
		t.Error("no packets that must not pass, or none that must pass")
	}
}

func (w *world) restart(t *testing.T, rng *rand.Rand) {
	t.Helper()
	d := w.daemons[rng.IntN(len(w.daemons))]
	if err := cmp.Or(d.stop(rng.IntN(2) == 0), d.start()); err != nil {
		t.Fatal(err)
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
		if f.Protocol == corev1.ProtocolTCP || f.Protocol == corev1.ProtocolUDP {
			all = append(all, f)
		}
	}
	return all
}
