package render

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/weft-proxy/weft/frontends/policy/model"
)

// benchFixture has 110 pods with 3 policies each, whose sets have 1,000 members, and a set
// of 100,000.
func benchFixture(b *testing.B) *fixture {
	f := newFixture(b)
	f.set("all", many(100_000)...)
	for i := range 110 {
		set := f.set(fmt.Sprintf("s%d", i), many(1000)...)
		f.policy(fmt.Sprintf("a/p%d", i), []model.Rule{{Pods: []model.SetID{set, "all"}, Ports: ports("tcp 80", "tcp 443", "udp 53")}}, nil)
		names := []string{"a/p0", fmt.Sprintf("a/p%d", i/2), fmt.Sprintf("a/p%d", i)}
		f.pod(fmt.Sprintf("a/%d", i), fmt.Sprintf("10.0.0.%d fd00::%d", i+1, i+1), names, nil)
	}
	f.r.Load(f.refresh())
	for f.r.Pending() {
		f.r.Update(model.Changes{})
	}
	return f
}

// BenchmarkUpdate renders one change on a node with 110 pods.
func BenchmarkUpdate(b *testing.B) {
	f := benchFixture(b)
	member := func(present bool) model.Changes {
		m := []model.Member{{Addr: netip.MustParseAddr("10.9.9.9")}}
		s := &f.sets["all"].set
		if present {
			return model.Changes{Sets: []model.SetChange{{Old: s, New: s, Added: m}}}
		}
		return model.Changes{Sets: []model.SetChange{{Old: s, New: s, Removed: m}}}
	}
	pod, policy := f.pods["a/7"], f.policies[policyID("a/p0")]
	empty := &model.Policy{ID: policy.ID}
	changes := map[string][2]model.Changes{
		"member": {member(true), member(false)},
		"pod":    {{Pods: []model.PodChange{{Old: pod}}}, {Pods: []model.PodChange{{New: pod}}}},
		// All pods have it.
		"policy": {{Policies: []model.PolicyChange{{Old: policy, New: empty}}}, {Policies: []model.PolicyChange{{Old: empty, New: policy}}}},
	}
	for _, name := range []string{"member", "pod", "policy"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if u := f.r.Update(changes[name][n%2]); u.Empty() {
					b.Fatal("nothing changed")
				}
				if n%64 == 0 {
					f.r.Cleanup()
				}
			}
		})
	}
}
