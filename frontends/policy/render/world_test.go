package render

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/weft-proxy/weft/frontends/policy/judge"
	"github.com/weft-proxy/weft/frontends/policy/model"
	"github.com/weft-proxy/weft/frontends/testing/modeltest"
	"github.com/weft-proxy/weft/frontends/testing/policytest"
)

// flowOf converts a flow.
func flowOf(f policytest.Flow) judge.Flow {
	return judge.Flow{Source: f.From, Destination: f.To, Protocol: protocolsOf[string(f.Protocol)], Port: uint16(f.Port)} //nolint:gosec // a port
}

// restart makes a new model and a new renderer, which adopts what the old one left.
func (w *world) restart() {
	left := w.r.Snapshot()
	w.fixture = newFixture(w.t, func(c *Config) { *c = w.r.cfg })
	w.model = model.New(model.Config{NodeName: thisNode})
	for _, c := range w.Cluster.Objects() {
		modeltest.Apply(w.model, c)
	}
	w.r.Restore(left)
	w.r.Load(w.model.Refresh())
	w.rules = load(w.t, w.r.Snapshot())
	w.publish()
}

// leaveOut renders a policy as left out, and as it is again.
func (w *world) leaveOut() {
	all := w.model.Snapshot().Policies
	if len(all) == 0 {
		return
	}
	p := all[w.Rand().IntN(len(all))].Policy
	w.step(model.Changes{Policies: []model.PolicyChange{{Old: &model.Policy{ID: p.ID}}}})
	w.compare()
	w.step(model.Changes{Policies: []model.PolicyChange{{New: p}}})
}

// rechecks reports whether established packets of a flow are judged again.
func (w *world) rechecks(f judge.Flow) bool {
	family := families[0]
	if f.Source.Is6() {
		family = families[1]
	}
	c := w.rules[family.table]
	if c.chains[chainForward] == nil || c.chains[chainForward].GetRules()[0].GetText() == relatedOnly {
		return true
	}
	in := c.sets[setRecheck].elements
	return in[f.Source.String()] != nil || in[f.Destination.String()] != nil
}

// TestWorldRestarts changes random clusters, also while weft does not run, and restarts.
// After each step the patches lead to the snapshot, and a flow that was allowed and is not
// any more is rechecked.
//
// Policy behaviour: 47, 51.
func TestWorldRestarts(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 50+seed)
			w.publish()
			w.r.LimitRecheck(false)
			cut := 0
			for range 60 {
				node, flows := w.node(), w.Cluster.Flows()
				before := make(map[judge.Flow]bool)
				for _, f := range flows {
					if w.Rand().IntN(4) == 0 && !slices.Contains(node, f.From) {
						before[flowOf(f)] = w.rules.traverse(flowOf(f), slices.Contains(node, f.To))
					}
				}
				for range 1 + w.Rand().IntN(4) {
					for _, c := range w.Change() {
						modeltest.Apply(w.model, c)
					}
				}
				switch w.Rand().IntN(4) {
				case 0:
					w.restart()
				case 1:
					w.publish()
					w.leaveOut()
				default:
					w.publish()
				}
				w.compare()
				node = w.node()
				for f, was := range before {
					if was && !slices.Contains(node, f.Source) && !w.rules.traverse(f, slices.Contains(node, f.Destination)) {
						v := w.r.Judge(f, func(netip.Addr) bool { return false })
						// The connections of a pod that has gone are not cut.
						gone := v.Ends[model.Ingress].Reason == judge.Unknown || v.Ends[model.Egress].Reason == judge.Unknown
						if cut++; !gone && !w.rechecks(f) {
							t.Fatalf("%s is not allowed any more, and not rechecked: %s", f, v)
						}
					}
				}
				w.r.Committed()
				w.r.EndRecheck(w.r.Rechecked(), nil)
				w.publish()
			}
			t.Logf("%d flows were cut", cut)
			if cut < 100 {
				t.Error("too few")
			}
		})
	}
}
