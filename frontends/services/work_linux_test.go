package services

import (
	"maps"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// work returns what every layer has looked at so far: model, rendering and aggregator,
// the dumps that it asked the kernel for among it.
func (r *rig) work(t *testing.T) map[string]float64 {
	t.Helper()
	out := make(map[string]float64)
	out["model"] = float64(statsOf(r.frontend).Work)
	out["render"] = float64(r.frontend.content.Work())
	families, err := r.metrics.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "weft_aggregator_work_total" {
				out["aggregator "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
			if f.GetName() == "weft_elements_changed_total" {
				out["elements "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// TestWorkIsThatOfTheChange sends the same changes to clusters of different sizes,
// through all layers to the kernel, and counts what each layer looks at: it may not depend
// on what else there is. What a change allocates is BenchmarkEventToCommit's, because a
// process also allocates for other reasons.
func TestWorkIsThatOfTheChange(t *testing.T) {
	for _, change := range []struct {
		name  string
		event func(benchSize, int) *discoveryv1.EndpointSlice
	}{{"replace", benchSize.replace}, {"resize", benchSize.resize}} {
		small := workPerChange(t, benchSize{100, 10}, change.event)
		if small["model"] == 0 || small["render"] == 0 || small["aggregator keys"] == 0 || small["aggregator dumps"] != 0 {
			t.Errorf("%s: what a change looks at: %v", change.name, small)
		}
		if large := workPerChange(t, benchSize{10_000, 10}, change.event); !maps.Equal(large, small) {
			t.Errorf("%s: a change in 10,000 Services has %v looked at, in 100 %v", change.name, large, small)
		}
		// Of its own Service, the model passes once over the packed endpoints for each of the twenty changes.
		few, many := workPerChange(t, benchSize{1, 1000}, change.event), workPerChange(t, benchSize{1, 100_000}, change.event)
		for layer, n := range many {
			most := 3 * few[layer]
			if layer == "model" {
				most = few[layer] + 20*(100_000+10)
			}
			if n > most {
				t.Errorf("%s: a change in 100,000 endpoints: %s is %v, in 1,000 %v", change.name, layer, n, few[layer])
			}
		}
	}
}

// workPerChange is what twenty changes look at in a cluster, after some others.
func workPerChange(t *testing.T, z benchSize, event func(benchSize, int) *discoveryv1.EndpointSlice) map[string]float64 {
	t.Helper()
	r := newRig(t, z.all())
	defer r.stop()
	turn := 0
	// An even number, so that all that resize took is back.
	changes := func(n int) {
		for range n {
			turn++
			r.src.deliver(event(z, turn))
			<-r.seen
		}
	}
	const n = 20
	changes(n)
	before := r.work(t)
	changes(n)
	after := r.work(t)
	for k := range after {
		after[k] -= before[k]
	}
	t.Logf("%s: %v", z, after)
	return after
}
