package render

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/frontends/policy/judge"
	"github.com/weft-proxy/weft/frontends/policy/model"
)

// manyBlocks returns n rules with a block each.
func manyBlocks(n int, edit func(i int, r *model.Rule)) []model.Rule {
	out := make([]model.Rule, n)
	for i := range out {
		a := netip.AddrFrom4([4]byte{11, byte(i >> 8), byte(i), 1})
		out[i] = model.Rule{Blocks: []model.Range{{First: a, Last: a}}}
		edit(i, &out[i])
	}
	return out
}

// policyRules returns the number of rules in the chain of a policy.
func (f *fixture) policyRules(prefix string) (n int) {
	for name, c := range f.rules["ip"].chains {
		if strings.HasPrefix(name, prefix) {
			n += len(c.GetRules())
		}
	}
	return n
}

// TestLargePolicies has policies of 10,000 rules: a packet passes few, and rendering takes
// little time.
func TestLargePolicies(t *testing.T) {
	const n = 10_000
	tests := map[string]struct {
		edit func(i int, r *model.Rule)
		most int
	}{
		"the same port":     {func(_ int, r *model.Rule) { r.Ports = ports("tcp 80") }, 1},
		"all ports":         {func(_ int, r *model.Rule) { r.AllPorts = true }, 1},
		"their own ports":   {func(i int, r *model.Rule) { r.Ports = ports(fmt.Sprintf("tcp %d", 1+i), "udp 53") }, 2},
		"200 ports":         {func(i int, r *model.Rule) { r.Ports = ports(fmt.Sprintf("udp %d", 1+i%200)) }, 1},
		"all, and of ports": {func(i int, r *model.Rule) { r.AllPorts, r.Ports = i%2 == 0, ports(fmt.Sprintf("tcp %d", 1+i))[:i%2] }, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.policy("shop/large", manyBlocks(n, test.edit), nil)
			f.pod("shop/db", "10.0.0.1", []string{"shop/large"}, nil)
			began := time.Now()
			f.finish()
			t.Log(time.Since(began))
			f.compare()
			if got := f.policyRules("policy-"); got > test.most {
				t.Errorf("a packet passes %d rules, want %d at most", got, test.most)
			}
			f.policy("shop/large", nil, nil)
			f.finish()
			for p := f.r.Cleanup(); p != nil; p = f.r.Cleanup() {
				f.rules.patch(t, p)
			}
			f.compare()
			if got := len(f.rules["ip"].chains); got != 5 {
				t.Errorf("%d chains are left", got)
			}
		})
	}
}

// TestRefusedPolicy has policies whose rules cannot be joined.
func TestRefusedPolicy(t *testing.T) {
	f := newFixture(t)
	many := manyBlocks(maxRules+1, func(i int, r *model.Rule) { r.Ports = ports(fmt.Sprintf("tcp %d-65000", i+1)) })
	f.policy("shop/large", many, nil)
	f.policy("admin/large", many, nil)
	f.policy("shop/small", everyone, nil)
	f.pod("shop/db", "10.0.0.1", []string{"shop/large", "shop/small"}, nil)
	f.pod("shop/web", "10.0.0.2", []string{"admin/large", "shop/small"}, nil)
	f.finish()
	for _, policy := range []string{"shop/large", "admin/large"} {
		if got := fmt.Sprint(f.r.LeftOut()[policyID(policy)]); got != "ingress has 20001 rules that cannot be joined: at most 20000 are possible" {
			t.Errorf("%s is refused: %q", policy, got)
		}
		if _, known := (enforced{f.r.tables[0]}).Rules(policyID(policy), model.Ingress); known {
			t.Errorf("the judge has rules of %s, which is left out", policy)
		}
	}
	if got := f.policyRules("policy-"); got != 1 {
		t.Errorf("the other policy has %d rules", got)
	}
	for to, want := range map[string]bool{"10.0.0.1": true, "10.0.0.2": false} {
		flow := judge.Flow{Source: netip.MustParseAddr("10.0.0.9"), Destination: netip.MustParseAddr(to), Protocol: model.TCP, Port: 80}
		v := f.r.Judge(flow, func(netip.Addr) bool { return false })
		if v.Allowed != want || f.rules.traverse(flow, false) != want {
			t.Errorf("%s, want allowed %v", v, want)
		}
	}
	f.policy("shop/large", everyone, nil)
	f.policy("admin/large", everyone, nil)
	f.finish()
	if got := f.r.LeftOut(); len(got) != 0 {
		t.Errorf("still refused: %q", got)
	}
}

// TestPortSpans compares the spans of random rules with the rules that match each port.
func TestPortSpans(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var rules []model.Rule
		for range rnd.IntN(8) {
			var r model.Rule
			for range rnd.IntN(4) {
				first := 1 + rnd.IntN(50)
				r.Ports = append(r.Ports, ports(fmt.Sprintf("tcp %d-%d", first, first+rnd.IntN(10)))...)
			}
			rules = append(rules, r)
		}
		spans, ok := portSpans(rules, model.TCP)
		if !ok {
			t.Fatal("too many")
		}
		for port := 1; port < 70; port++ {
			var want, got []int
			for i := range rules {
				if slices.ContainsFunc(rules[i].Ports, func(p model.PortRange) bool {
					return p.First == 0 && p.Last == 0 || int(p.First) <= port && port <= int(p.Last)
				}) {
					want = append(want, i)
				}
			}
			for _, s := range spans {
				if s.first <= port && port <= s.last {
					got = append(got, s.rules...)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("port %d: rules %v, want %v", port, got, want)
			}
		}
	}
	var wide []model.Rule
	for i := range 1000 {
		wide = append(wide, model.Rule{Ports: ports(fmt.Sprintf("tcp %d-65000", i+1))})
	}
	if _, ok := portSpans(wide, model.TCP); ok {
		t.Error("1,000 overlapping rules are not too many")
	}
}

// TestLargePolicyInPortions declares a large policy in several updates, between which a small one
// is in force. A pod that had no chain is isolated meanwhile, and one that had keeps it.
func TestLargePolicyInPortions(t *testing.T) {
	const before, fresh = "10.0.0.1", "10.0.0.2"
	f := newFixture(t)
	f.policy("shop/large", manyBlocks(1, func(_ int, r *model.Rule) { r.AllPorts = true }), nil)
	f.pod("shop/before", before, []string{"shop/large"}, nil)
	f.finish()
	was := f.target(mapNames[ingress], before)
	f.policy("shop/large", manyBlocks(10_000, func(i int, r *model.Rule) { r.Ports = ports(fmt.Sprintf("tcp %d", 1+i)) }), nil)
	f.pod("shop/fresh", fresh, []string{"shop/large"}, nil)
	f.update()
	isolated := strings.TrimPrefix(f.target(mapNames[ingress], fresh), "goto ")
	rules := f.rules["ip"].chains[isolated].GetRules()
	if len(rules) == 0 || rules[len(rules)-1].GetText() == "" || !strings.HasSuffix(rules[len(rules)-1].GetText(), "drop") {
		t.Fatalf("the new pod leads to %q with the rules %v", isolated, rules)
	}
	large, small := policyID("shop/large"), policyID("shop/small")
	portions := 0
	for ; f.r.Pending(); portions++ {
		if got := f.target(mapNames[ingress], before); got != was || !f.r.Waits(large) {
			t.Fatalf("after %d portions the pod leads to %q, want %q; the policy waits: %t", portions, got, was, f.r.Waits(large))
		}
		if portions == 1 {
			f.policy("shop/small", manyBlocks(1, func(_ int, r *model.Rule) { r.AllPorts = true }), nil)
			f.pod("shop/other", "10.0.0.3", []string{"shop/small"}, nil)
		}
		f.update()
		if portions == 1 && (f.target(mapNames[ingress], "10.0.0.3") == "" || f.policyRules("policy-") == 0 || f.r.Waits(small)) {
			t.Error("a small policy waits for a large one")
		}
		f.compare()
	}
	if got := f.target(mapNames[ingress], before); got == was || got != f.target(mapNames[ingress], fresh) || f.r.Waits(large) || portions < 4 {
		t.Errorf("after %d portions the pod leads to %q", portions, got)
	}
}
